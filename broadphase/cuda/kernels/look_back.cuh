// SPDX-License-Identifier: Zlib
// A sum over all tiles before one's own, within one kernel: decoupled look-back (Merrill and
// Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/warp.cuh"

namespace lbvh {

/// What the blocks of a kernel tell each other. All zero before the kernel.
struct TileChain {
  unsigned long long* next;   ///< the tile that the next block takes
  unsigned long long* words;  ///< by tile: a sum, and in the two lowest bits whose
};

/// The number of this block's tile. Blocks take them in the order in which they begin, so that a
/// tile waits only for blocks that run. @param shared one word of the block's shared memory
__device__ inline std::uint32_t takeTile(const TileChain& chain, std::uint32_t& shared) {
  if (threadIdx.x == 0) shared = static_cast<std::uint32_t>(atomicAdd(chain.next, 1ull));
  __syncthreads();
  return shared;
}

namespace look_back {
constexpr unsigned long long kOwn = 1, kAll = 2, kWhose = 3;  // of the tile; up to and with it

__device__ inline void tell(unsigned long long* word, unsigned long long sum,
                            unsigned long long whose) {
  *static_cast<volatile unsigned long long*>(word) = sum << 2 | whose;
}

__device__ inline unsigned long long await(const unsigned long long* word) {
  unsigned long long seen = 0;
  do seen = *static_cast<const volatile unsigned long long*>(word);
  while ((seen & kWhose) == 0);
  return seen;
}
}  // namespace look_back

/// All lanes of one warp call it, once a tile. @param own this tile's sum, below 2^62; several
/// counts may share it, if each has bits enough for the sum over all tiles
__device__ inline unsigned long long sumOfTilesBefore(const TileChain& chain, std::uint32_t tile,
                                                      unsigned long long own) {
  using namespace look_back;
  if (lane() == 0) tell(&chain.words[tile], own, tile == 0 ? kAll : kOwn);
  unsigned long long before = 0;
  for (std::uint32_t end = tile; end > 0; end -= end < 32 ? end : 32) {
    // Lane 0 looks at the nearest tile. What lies before tile 0 is known to be nothing.
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
