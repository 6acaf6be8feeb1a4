// SPDX-License-Identifier: Zlib
#pragma once

#include "../../broadphase/device_pair_finder.h"
