// SPDX-License-Identifier: Zlib
// Where 0.2.0 had it. Include broadphase/device_query.h instead: this file goes in 0.4.
#pragma once

#include "../device_query.h"
