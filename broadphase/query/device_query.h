// SPDX-License-Identifier: Zlib
// The path of this header in version 0.2.0. Include broadphase/device_query.h instead: this file
// will be removed in 0.4.
#pragma once

#include "../device_query.h"
