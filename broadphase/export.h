// SPDX-License-Identifier: Zlib
/// @file
/// Marks what a shared library shows; all else in it is hidden. C++17.
#pragma once

/// @def GPULBVH_API
/// Shown by the shared library of the core.
/// @def GPULBVH_BULLET_API
/// Shown by the shared library of the adapter.
#if !defined(GPULBVH_SHARED)  // CMake defines it for shared libraries, and for who links them
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
