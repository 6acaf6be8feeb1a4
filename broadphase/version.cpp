// SPDX-License-Identifier: Zlib
// CMakeLists.txt defines the version number, so that no source file repeats it.
#include "broadphase/version.h"

#ifndef GPULBVH_VERSION
#define GPULBVH_VERSION "unknown"
#endif

const char* lbvh::version() noexcept { return GPULBVH_VERSION; }
