// SPDX-License-Identifier: Zlib
// Pairs by their first box. The traversal counts the pairs of each box as it finds them; the sum of
// the counts tells where each box's list begins, and the pairs' second boxes are scattered there.
// No pass sorts whole pairs: lists are short, and compare_lists.cuh sorts each by itself.
#pragma once

#include <cstdint>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

#include "broadphase/cuda/kernels/look_back.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// The pairs of box b are pairs[begin(b)] up to pairs[begin(b + 1)].
struct PairLists {
  const Pair* pairs = nullptr;
  const std::uint32_t* offsets = nullptr;  ///< boxes + 1
  std::uint32_t boxes = 0;                 ///< those behind have no pairs

  __device__ std::uint32_t begin(std::uint32_t box) const {
    return boxes == 0 ? 0 : offsets[box < boxes ? box : boxes];
  }
};

/// Element i: the offsets up to that of the first box of pair i, of sorted pairs. One element more
/// than there are pairs.
struct IndexLists {
  View<const Pair> pairs;
  View<std::uint32_t> offsets;

  __device__ void operator()(std::uint32_t i) const {
    const auto end = static_cast<std::uint32_t>(offsets.size);
    const std::uint32_t last = i < pairs.size ? pairs[i].first + 1 : end;
    for (std::uint32_t box = i > 0 ? pairs[i - 1].first + 1 : 0; box < last; ++box)
      offsets[box] = i;
  }
};

/// Element i: puts the second box of pair i, of those found, into the first one's list; and if it
/// has a place there, the first into the second one's.
struct ScatterPairs {
  View<const Pair> room;
  const unsigned long long* found;   ///< may exceed the room
  const std::uint32_t* places;       ///< by pair: its place in its list
  const std::uint32_t* otherPlaces;  ///< null: a pair is in one list
  const std::uint32_t* offsets;      ///< by box: where its list begins
  std::uint32_t* seconds;

  __device__ void operator()(std::uint32_t i) const {
    if (i >= *found) return;
    const Pair pair = room[i];
    seconds[offsets[pair.first] + places[i]] = pair.second;
    if (otherPlaces != nullptr) seconds[offsets[pair.second] + otherPlaces[i]] = pair.first;
  }
};

/// Counts become the sums before them.
struct SumCounts {
  static constexpr int kEach = 8;  ///< of a thread
  static constexpr std::uint32_t kTile = kEach * kThreads;

  View<std::uint32_t> counts;
  TileChain chain;

  static std::size_t tiles(std::size_t counts) { return (counts + kTile - 1) / kTile; }
};

static __global__ void __launch_bounds__(kThreads) sumCountsKernel(SumCounts sum) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ std::uint32_t shared, before;
  const std::uint32_t tile = takeTile(sum.chain, shared), begin = tile * SumCounts::kTile;
  const auto size = static_cast<std::uint32_t>(sum.counts.size) - begin;
  std::uint32_t counts[SumCounts::kEach];
  cub::LoadDirectBlocked(threadIdx.x, sum.counts.data + begin, counts, size, 0u);
  std::uint32_t all = 0;
  Scan(scan).ExclusiveSum(counts, counts, all);
  if (threadIdx.x < 32) {
    const auto found = static_cast<std::uint32_t>(sumOfTilesBefore(sum.chain, tile, all));
    if (threadIdx.x == 0) before = found;
  }
  __syncthreads();
  for (std::uint32_t& count : counts) count += before;
  cub::StoreDirectBlocked(threadIdx.x, sum.counts.data + begin, counts, size);
}

}  // namespace lbvh
