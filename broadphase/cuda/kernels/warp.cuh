// SPDX-License-Identifier: Zlib
// What the lanes of a warp know of each other.
#pragma once

#include <cstdint>

namespace lbvh {

inline constexpr std::uint32_t kWarp = 32;
inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFF;

__device__ inline std::uint32_t lane() { return threadIdx.x % kWarp; }

__device__ inline std::uint32_t countBits(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__popc(bits));
}
/// Of bits that are not 0.
__device__ inline std::uint32_t lowestBit(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1;
}
/// How many lanes below this one are set.
__device__ inline std::uint32_t lanesBefore(std::uint32_t votes) {
  return countBits(votes & ((1u << lane()) - 1));
}

/// The sum over the lanes up to and with this one. All lanes call it.
__device__ inline std::uint32_t sumUpToLane(std::uint32_t n) {
  for (std::uint32_t step = 1; step < kWarp; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAllLanes, n, step);
    if (lane() >= step) n += before;
  }
  return n;
}

/// The sum over all lanes, on all of them.
template <class T>
__device__ inline T sumOfLanes(T n) {
  for (std::uint32_t step = kWarp / 2; step > 0; step /= 2)
    n += __shfl_xor_sync(kAllLanes, n, step);
  return n;
}

}  // namespace lbvh
