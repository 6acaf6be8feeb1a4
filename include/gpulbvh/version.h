// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/version.h"
