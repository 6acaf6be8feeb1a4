// SPDX-License-Identifier: Zlib
/// @file
/// Defines macros that mark the symbols that a shared library exports. All other symbols are
/// hidden. C++17.
#pragma once

/// @def GPULBVH_API
/// Marks symbols that the core's shared library exports.
/// @def GPULBVH_BULLET_API
/// Marks symbols that the adapter's shared library exports.
/// @def GPULBVH_BEGIN_OLD_NAMES
/// Up to GPULBVH_END_OLD_NAMES, the use of deprecated names causes no warning.
/// @def GPULBVH_END_OLD_NAMES
/// Ends the region that GPULBVH_BEGIN_OLD_NAMES begins.
#if defined(__GNUC__) || defined(__clang__)
#define GPULBVH_BEGIN_OLD_NAMES \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
#define GPULBVH_END_OLD_NAMES _Pragma("GCC diagnostic pop")
#elif defined(_MSC_VER)
#define GPULBVH_BEGIN_OLD_NAMES __pragma(warning(push)) __pragma(warning(disable : 4996))
#define GPULBVH_END_OLD_NAMES __pragma(warning(pop))
#else
#define GPULBVH_BEGIN_OLD_NAMES
#define GPULBVH_END_OLD_NAMES
#endif

#if !defined(GPULBVH_SHARED)  // CMake defines it for shared libraries and their users
#define GPULBVH_API
#define GPULBVH_BULLET_API
#elif defined(_WIN32)
#if defined(gpulbvh_broadphase_EXPORTS)
#define GPULBVH_API __declspec(dllexport)
#else
#define GPULBVH_API __declspec(dllimport)
#endif
#if defined(gpulbvh_bullet_EXPORTS)
#define GPULBVH_BULLET_API __declspec(dllexport)
#else
#define GPULBVH_BULLET_API __declspec(dllimport)
#endif
#else
#define GPULBVH_API __attribute__((visibility("default")))
#define GPULBVH_BULLET_API __attribute__((visibility("default")))
#endif
