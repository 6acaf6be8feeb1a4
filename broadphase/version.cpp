// SPDX-License-Identifier: Zlib
// The number comes from CMakeLists.txt, so that it stands in one place.
#include "broadphase/version.h"

#ifndef GPULBVH_VERSION
#define GPULBVH_VERSION "unknown"
#endif

const char* lbvh::version() noexcept { return GPULBVH_VERSION; }
