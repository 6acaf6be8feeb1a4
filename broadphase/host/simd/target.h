// SPDX-License-Identifier: Zlib
// Includes the headers that the file of an instruction set needs, before that file enables its
// instructions. Otherwise the linker could choose a header's function with AVX-512 code for the
// whole program.
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

/// The result of comparing several pairs with the same number of others: a bit for each pair.
struct PairMasks {
  std::uint32_t differ, less;
};

}  // namespace lbvh
