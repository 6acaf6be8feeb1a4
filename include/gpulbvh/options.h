// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/options.h"
