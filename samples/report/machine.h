// SPDX-License-Identifier: Zlib
// The facts that the times of a report depend on: machine, compiler, Bullet, and the built commit.
#pragma once

#include "report/html_page.h"

Facts machineFacts();
