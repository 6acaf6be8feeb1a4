// The headers that an instruction set's file needs. They are included before it switches its
// instructions on: else the linker could pick a header's function with AVX-512 code for everybody.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "broadphase/host/simd/kernels.h"
#include "broadphase/prefetch.h"
#include "broadphase/stages/morton.h"

#if !defined(__GNUC__)
#error "the host's inner loops need the vector types of GCC or Clang"
#endif

// Functions between these two may use the instructions of `targets`.
#define LBVH_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define LBVH_BEGIN_TARGET(targets) \
  LBVH_PRAGMA(clang attribute push(__attribute__((target(targets))), apply_to = function))
#define LBVH_END_TARGET LBVH_PRAGMA(clang attribute pop)
#else
#define LBVH_BEGIN_TARGET(targets) LBVH_PRAGMA(GCC push_options) LBVH_PRAGMA(GCC target(targets))
#define LBVH_END_TARGET LBVH_PRAGMA(GCC pop_options)
#endif

namespace lbvh {

/// Sixteen numbers each. The compiler keeps them in registers of whatever size the target has.
using Words = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));
using Floats = float __attribute__((vector_size(4 * kLanes)));

/// The comparison of several pairs with as many others: a bit each.
struct PairMasks {
  std::uint32_t differ, less;
};

}  // namespace lbvh
