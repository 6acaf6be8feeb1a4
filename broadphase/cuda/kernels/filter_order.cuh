// SPDX-License-Identifier: Zlib
// Sorts boxes with equal keys by their filters, on a GPU. Boxes whose keys along the curve are
// equal are near each other, so each of their blocks overlaps all the others. After this sort most
// blocks have boxes of one filter, and a search skips blocks whose filters cannot match.
#pragma once

#include <cstdint>
#include <cub/block/block_merge_sort.cuh>

#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/types.h"

namespace lbvh {

template <class Key>
struct SortTies {
  View<const Key> keys;      ///< sorted
  std::uint32_t* ids;        ///< boxes in the order of the keys
  const Filter* filters;     ///< by box
  const StepHeader* header;  ///< written by stage 1

  /// A word to sort by. Its high bits are equal for boxes with the same filter, and its low bits
  /// are the box's index in the group. Different filters may share the same high bits, which only
  /// makes a search slower.
  __device__ std::uint64_t word(std::uint32_t id, std::uint32_t place) const {
    const Filter filter = filters[id];
    std::uint64_t both = std::uint64_t{static_cast<std::uint32_t>(filter.group)} << 32 |
                         static_cast<std::uint32_t>(filter.mask);
    both *= 0x9E3779B97F4A7C15u;  // odd, so that different filters have different products
    return (both ^ both >> 32) / PackBlocks::kGroup * PackBlocks::kGroup + place;
  }
};

/// Sorts each group whose keys are all equal, with one thread block per group. Other groups stay as
/// they are: the search of a group with fewer equal keys is short in any order.
template <class Key>
static __global__ void __launch_bounds__(PackBlocks::kGroup) sortTiesKernel(SortTies<Key> ties) {
  using Sort = cub::BlockMergeSort<std::uint64_t, PackBlocks::kGroup, 1>;
  __shared__ typename Sort::TempStorage storage;
  const std::uint32_t begin = blockIdx.x * PackBlocks::kGroup, end = begin + PackBlocks::kGroup;
  const SceneBounds& scene = ties.header->scene;
  if (end > scene.ordinary + scene.oversized) return;  // the group has NaN boxes or is not full
  if (ties.keys[begin] != ties.keys[end - 1]) return;
  std::uint64_t words[] = {ties.word(ties.ids[begin + threadIdx.x], threadIdx.x)};
  Sort(storage).Sort(words, [](std::uint64_t a, std::uint64_t b) { return a < b; });
  const auto from = static_cast<std::uint32_t>(words[0] % PackBlocks::kGroup);
  const std::uint32_t id = ties.ids[begin + from];
  __syncthreads();  // until all threads have read their ids
  ties.ids[begin + threadIdx.x] = id;
}

}  // namespace lbvh
