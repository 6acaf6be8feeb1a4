// SPDX-License-Identifier: Zlib
// The headers that an instruction set's file needs. They are included before it switches its
// instructions on: else the linker could pick a header's function with AVX-512 code for everybody.
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

namespace lbvh {

/// The comparison of several pairs with as many others: a bit each.
struct PairMasks {
  std::uint32_t differ, less;
};

}  // namespace lbvh
