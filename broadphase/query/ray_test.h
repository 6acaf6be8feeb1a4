// SPDX-License-Identifier: Zlib
// The path of this header in version 0.2.0. Include broadphase/ray_test.h instead: this file will
// be removed in 0.4.
#pragma once

#include "../ray_test.h"
