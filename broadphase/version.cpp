// SPDX-License-Identifier: Zlib
// CMakeLists.txt defines the number, so that it is written in only one place.
#include "broadphase/version.h"

#ifndef GPULBVH_VERSION
#define GPULBVH_VERSION "unknown"
#endif

const char* lbvh::version() noexcept { return GPULBVH_VERSION; }
