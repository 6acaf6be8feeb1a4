// SPDX-License-Identifier: Zlib
// Includes the headers that the source file of an instruction set needs. The source file includes
// this header before it enables its instructions. Otherwise the linker could choose, for the whole
// program, a copy of a header's function with AVX-512 code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "broadphase/core/morton.h"
#include "broadphase/core/prefetch.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/simd/lanes.h"
#include "broadphase/host/simd/short_blocks.h"

namespace lbvh {

/// The results of comparing several pairs a[i] with pairs b[i]: bit i of `differ` is set if they
/// differ, and bit i of `less` if a[i] is smaller.
struct PairMasks {
  std::uint32_t differ, less;
};

}  // namespace lbvh
