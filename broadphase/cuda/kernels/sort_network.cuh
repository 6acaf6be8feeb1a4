// SPDX-License-Identifier: Zlib
// Batcher's odd-even merge sort of a few numbers in registers: every comparison is known when the
// code is compiled, so that the lanes of a warp stay together and no number needs an address.
#pragma once

#include <cstdint>

namespace lbvh {

namespace sort_network {

template <int kSize, int kI, int kDistance, int kBlock>
__device__ inline void compare(std::uint32_t (&x)[kSize]) {
  if constexpr (kI / (2 * kBlock) == (kI + kDistance) / (2 * kBlock)) {
    const std::uint32_t low = min(x[kI], x[kI + kDistance]);
    x[kI + kDistance] = max(x[kI], x[kI + kDistance]);
    x[kI] = low;
  }
}

/// Compares x[i] with x[i + distance], for runs of `distance` numbers, every second run.
template <int kSize, int kI, int kDistance, int kBlock>
__device__ inline void pass(std::uint32_t (&x)[kSize]) {
  if constexpr (kI + kDistance < kSize) {
    compare<kSize, kI, kDistance, kBlock>(x);
    constexpr bool endsRun = (kI - kDistance % kBlock) % kDistance == kDistance - 1;
    pass<kSize, kI + 1 + (endsRun ? kDistance : 0), kDistance, kBlock>(x);
  }
}

template <int kSize, int kDistance, int kBlock>
__device__ inline void merge(std::uint32_t (&x)[kSize]) {
  pass<kSize, kDistance % kBlock, kDistance, kBlock>(x);
  if constexpr (kDistance > 1) merge<kSize, kDistance / 2, kBlock>(x);
}

template <int kSize, int kBlock>
__device__ inline void mergeSort(std::uint32_t (&x)[kSize]) {
  if constexpr (kBlock < kSize) {
    merge<kSize, kBlock, kBlock>(x);
    mergeSort<kSize, 2 * kBlock>(x);
  }
}

}  // namespace sort_network

/// Ascending. @tparam kSize a power of two
template <int kSize>
__device__ inline void sortInRegisters(std::uint32_t (&x)[kSize]) {
  sort_network::mergeSort<kSize, 1>(x);
}

}  // namespace lbvh
