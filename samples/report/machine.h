// SPDX-License-Identifier: Zlib
// The facts that a figure depends on: machine, compiler, Bullet, and the commit that was built.
#pragma once

#include "report/html_page.h"

Facts machineFacts();
