// What every host_kernels_*.cpp includes before it switches on its instructions, so that no
// function of these headers is compiled with them and then picked by the linker for all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "broadphase/exec/host_kernels.h"
#include "broadphase/stages/morton.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define LBVH_X86 1
#endif

// Functions between these two may use the instructions of `targets`.
#define LBVH_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define LBVH_BEGIN_TARGET(targets) \
  LBVH_PRAGMA(clang attribute push(__attribute__((target(targets))), apply_to = function))
#define LBVH_END_TARGET LBVH_PRAGMA(clang attribute pop)
#elif defined(__GNUC__)
#define LBVH_BEGIN_TARGET(targets) LBVH_PRAGMA(GCC push_options) LBVH_PRAGMA(GCC target(targets))
#define LBVH_END_TARGET LBVH_PRAGMA(GCC pop_options)
#else  // Visual C++ has all intrinsics in every function
#define LBVH_BEGIN_TARGET(targets)
#define LBVH_END_TARGET
#endif

namespace lbvh {

/// Sixteen words; the compiler makes registers of them, of whatever size the target has.
#if defined(__GNUC__)
using Words = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));
using Floats = float __attribute__((vector_size(4 * kLanes)));
#else
#error "TODO"
#endif

/// Asks for the cache line of `at`; a hint.
inline void prefetch(const void* at) {
#if defined(__GNUC__)
  __builtin_prefetch(at);
#else
  (void)at;
#endif
}

}  // namespace lbvh
