// SPDX-License-Identifier: Zlib
/// @file
/// The library's version. C++17.
#pragma once

#include "export.h"

namespace lbvh {

/// The version of the library at run time, such as "1.2.3"; "unknown" if it was built without
/// CMake.
GPULBVH_API const char* version() noexcept;

}  // namespace lbvh
