// SPDX-License-Identifier: Zlib
// Where 0.2.0 had it. Include broadphase/ray_test.h instead: this file goes in 0.4.
#pragma once

#include "../ray_test.h"
