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

/// The results of several comparisons of one pair with another. Each mask has a bit for each
/// comparison.
struct PairMasks {
  std::uint32_t differ, less;
};

}  // namespace lbvh
