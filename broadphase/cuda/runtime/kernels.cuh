// SPDX-License-Identifier: Zlib
// Basic parts of kernels: a thread for each element, communication between the lanes of a warp, and
// sums over the tiles of a grid. This code does not depend on boxes or pairs.
#pragma once

#include <cstdint>

namespace lbvh {

inline constexpr unsigned kThreads = 128;

template <class Body>
__global__ void __launch_bounds__(kThreads) forEachKernel(Body body, std::uint32_t n) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) body(i);
}

struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, const T& b) const {
    a += b;
    return a;
  }
};

struct Less {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

// Communication between the lanes of a warp.

inline constexpr std::uint32_t kWarpBits = 5, kWarp = 1 << kWarpBits;
inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFF;

__device__ inline std::uint32_t lane() { return threadIdx.x % kWarp; }

__device__ inline std::uint32_t countBits(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__popc(bits));
}
/// The index of the lowest set bit. `bits` must not be 0.
__device__ inline std::uint32_t lowestBit(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1;
}
/// The number of lanes below this one whose bit is set in `votes`.
__device__ inline std::uint32_t lanesBefore(std::uint32_t votes) {
  return countBits(votes & ((1u << lane()) - 1));
}

/// Adds the `n` of the lane kStep below, if that lane exists. The shuffle's predicate is false if
/// it does not.
template <std::uint32_t kStep>
__device__ inline void addFromBelow(std::uint32_t& n) {
  asm volatile(
      "{ .reg .u32 below; .reg .pred isThere;"
      "  shfl.sync.up.b32 below|isThere, %0, %1, 0, -1;"
      "  @isThere add.u32 %0, %0, below; }"
      : "+r"(n)
      : "n"(kStep));
}

/// The sum over the lanes up to and including this one. All lanes must call it.
__device__ inline std::uint32_t sumUpToLane(std::uint32_t n) {
  addFromBelow<1>(n);
  addFromBelow<2>(n);
  addFromBelow<4>(n);
  addFromBelow<8>(n);
  addFromBelow<16>(n);
  return n;
}

// The sum, minimum and maximum over all lanes, returned on all of them. GPUs of compute capability
// 8.0 and higher have an instruction for 32-bit words.

template <class T, class Combine>
__device__ inline T combineLanes(T n, const Combine& combine) {
  for (std::uint32_t step = kWarp / 2; step > 0; step /= 2)
    n = combine(n, __shfl_xor_sync(kAllLanes, n, step));
  return n;
}

template <class T>
__device__ inline T sumOfLanes(T n) {
  return combineLanes(n, Plus{});
}
__device__ inline std::uint32_t sumOfLanes(std::uint32_t n) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAllLanes, n);
#else
  return combineLanes(n, Plus{});
#endif
}

/// The bitwise OR of the `bits` of all lanes.
__device__ inline std::uint32_t orOfLanes(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(kAllLanes, bits);
#else
  return combineLanes(bits, [](std::uint32_t a, std::uint32_t b) { return a | b; });
#endif
}

/// Maps the bits of a float to an integer, and back. The integers have the same order as the
/// floats. A NaN with a clear sign bit sorts above all numbers, and one with a set sign bit below
/// them.
__device__ inline int orderedBits(int bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }

/// The minimum. The sign bit of NaNs must be clear. The result is a NaN only if all lanes have one.
__device__ inline float leastOfLanes(float x) {
#if __CUDA_ARCH__ >= 800
  const int least = __reduce_min_sync(kAllLanes, orderedBits(__float_as_int(x)));
  return __int_as_float(orderedBits(least));
#else
  return combineLanes(x, [](float a, float b) { return fminf(a, b); });
#endif
}
/// The maximum. The sign bit of NaNs must be set. The result is a NaN only if all lanes have one.
__device__ inline float greatestOfLanes(float x) {
#if __CUDA_ARCH__ >= 800
  const int greatest = __reduce_max_sync(kAllLanes, orderedBits(__float_as_int(x)));
  return __int_as_float(orderedBits(greatest));
#else
  return combineLanes(x, [](float a, float b) { return fmaxf(a, b); });
#endif
}

// The sum over all tiles before the block's own tile, within one kernel: decoupled look-back
// (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).

/// Memory through which the blocks of a kernel exchange sums. The caller must set it to zero before
/// the kernel.
struct TileChain {
  unsigned long long* next;   ///< number of the tile that the next block takes
  unsigned long long* words;  ///< by tile: sum << 2 | status (see look_back)
};

/// Takes the next tile for this block, and returns its number. Blocks take tiles in the order in
/// which the blocks begin. So a block waits only for blocks that are running or have ended.
/// @param shared one word of the block's shared memory
__device__ inline std::uint32_t takeTile(const TileChain& chain, std::uint32_t& shared) {
  if (threadIdx.x == 0) shared = static_cast<std::uint32_t>(atomicAdd(chain.next, 1ull));
  __syncthreads();
  return shared;
}

namespace look_back {
// The status 0 means that there is no sum yet. kOwn: the sum of this tile. kAll: the sum over all
// tiles up to this one.
constexpr unsigned long long kOwn = 1, kAll = 2, kWhose = 3;

__device__ inline void tell(unsigned long long* word, unsigned long long sum,
                            unsigned long long whose) {
  *static_cast<volatile unsigned long long*>(word) = sum << 2 | whose;
}

__device__ inline unsigned long long await(const unsigned long long* word) {
  for (;;) {
    const unsigned long long seen = *static_cast<const volatile unsigned long long*>(word);
    if ((seen & kWhose) != 0) return seen;
    // A tile with a hub (list_tiles.cuh) takes milliseconds. Without a pause the waiting warps
    // would keep the L2 cache busy.
    __nanosleep(64);
  }
}
}  // namespace look_back

/// The sum over all tiles before this one. All lanes of one warp must call it, once for each tile.
/// @param own this tile's sum, below 2^62; several counts may share it if each has enough bits for
///   the sum over all tiles
__device__ inline unsigned long long sumOfTilesBefore(const TileChain& chain, std::uint32_t tile,
                                                      unsigned long long own) {
  using namespace look_back;
  if (lane() == 0) tell(&chain.words[tile], own, tile == 0 ? kAll : kOwn);
  unsigned long long before = 0;
  for (std::uint32_t end = tile; end > 0; end -= end < 32 ? end : 32) {
    // Lane 0 reads the nearest tile. The sum before tile 0 is 0.
    const unsigned long long seen = lane() < end ? await(&chain.words[end - 1 - lane()]) : kAll;
    const unsigned ends = __ballot_sync(kAllLanes, (seen & kWhose) == kAll);
    const unsigned last = ends != 0 ? lowestBit(ends) : kWarp - 1;
    before += sumOfLanes(lane() <= last ? seen >> 2 : 0);
    if (ends != 0) break;
  }
  if (lane() == 0 && tile > 0) tell(&chain.words[tile], before + own, kAll);
  return before;
}

}  // namespace lbvh
