// SPDX-License-Identifier: Zlib
// Runs stage 5, the search for pairs, over a binary tree on a GPU. Each lane walks the tree for one
// leaf (lbvh/leaf_walk.h). The leaves of a warp are neighbours along the curve, so the lanes visit
// mostly the same nodes.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/lbvh/leaf_walk.h"
#include "broadphase/types.h"

namespace lbvh {

struct FindTreePairs {
  const Node* nodes;     ///< numbered by THE INDEX RULE (types.h)
  std::uint32_t leaves;  ///< at least one
  FoundPairs out;
};

/// The shared memory of a warp.
struct TreeSearchMemory {
  static constexpr std::uint32_t kVisits = 16;  ///< visits per lane between two votes of the warp

  std::uint32_t met[kVisits * kWarp];  ///< boxes found in these visits, in one column per lane
  Pair stage[kStaged];
};

class TreeSearch {
 public:
  /// @param leaf the lane's leaf; if it is `in.leaves` or more, the lane has none
  __device__ TreeSearch(const FindTreePairs& in, TreeSearchMemory& memory, std::uint32_t leaf)
      : in_(in), memory_(memory), stage_(in.out, memory.stage) {
    if (leaf < in.leaves) walk_ = LeafWalk::from(nodeAt(in.leaves - 1 + leaf));
  }

  __device__ void run() {
    while (!stage_.isOver() && __any_sync(kAllLanes, !walk_.isOver())) emit(walkOn());
    if (!stage_.isOver()) stage_.flush();
  }

 private:
  /// Continues the lane's walk for up to kVisits nodes.
  /// @return the number of boxes that the lane has found in these visits
  __device__ std::uint32_t walkOn() {
    std::uint32_t slot = lane();
#pragma unroll 4
    for (std::uint32_t k = 0; k < TreeSearchMemory::kVisits; ++k) {
      if (walk_.isOver()) break;
      const Node node = nodeAt(walk_.at);
      if (!walk_.visit(node)) continue;
      memory_.met[slot] = node.box();
      slot += kWarp;
    }
    return slot / kWarp;
  }

  /// Reads a node with two loads.
  __device__ Node nodeAt(std::uint32_t i) const {
    const auto* const at = reinterpret_cast<const float4*>(in_.nodes + i);
    const float4 low = at[0], high = at[1];
    return {{low.x, low.y, low.z},
            __float_as_uint(low.w),
            {high.x, high.y, high.z},
            __float_as_uint(high.w)};
  }

  /// Appends the pairs that the lanes have found to stage_: the first pair of each lane, then the
  /// second of each, and so on.
  __device__ void emit(std::uint32_t count) {
    for (std::uint32_t k = 0;; ++k) {
      const bool has = k < count;
      const std::uint32_t votes = __ballot_sync(kAllLanes, has);
      if (votes == 0) return;
      stage_.reserve(countBits(votes));
      if (has)
        *stage_.at(lanesBefore(votes)) = makePair(walk_.box, memory_.met[k * kWarp + lane()]);
      stage_.close(countBits(votes));
    }
  }

  const FindTreePairs& in_;
  TreeSearchMemory& memory_;
  PairStage<false> stage_;
  LeafWalk walk_{};
};

static __global__ void __launch_bounds__(kThreads) findTreePairsKernel(FindTreePairs in) {
  __shared__ TreeSearchMemory memory[kThreads / kWarp];
  const std::uint32_t leaf = blockIdx.x * kThreads + threadIdx.x;
  TreeSearch(in, memory[threadIdx.x / kWarp], leaf).run();
}

}  // namespace lbvh
