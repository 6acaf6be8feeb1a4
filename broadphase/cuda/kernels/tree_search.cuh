// SPDX-License-Identifier: Zlib
// Stage 5 over a binary tree on a GPU: each lane walks for a leaf (lbvh/leaf_walk.h). Some walks
// are longer than others. So a warp has a pool of leaves, and a lane that has ended its walk takes
// the next leaf. Leaves of a pool are neighbours along the curve, so their lanes visit the same
// nodes.
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
  std::uint32_t pool;  ///< leaves per warp

  /// Leaves per warp. A larger pool keeps the lanes busier, but makes a warp take longer. If the
  /// GPU runs all warps at the same time, the search takes as long as the longest warp.
  static std::uint32_t poolFor(std::size_t leaves) { return leaves <= 1 << 17 ? kWarp : 4 * kWarp; }

  /// Number of thread blocks to launch.
  std::size_t blocks() const {
    const std::size_t perBlock = kThreads / kWarp * std::size_t{pool};
    return (leaves + perBlock - 1) / perBlock;
  }
};

/// The shared memory of a warp.
struct TreeSearchMemory {
  static constexpr std::uint32_t kVisits = 16;  ///< visits of a lane between two votes of the warp

  std::uint32_t met[kVisits * kWarp];  ///< boxes found in these visits, in one column per lane
  Pair stage[kStaged];
};

class TreeSearch {
 public:
  /// @param begin the first of the warp's leaves
  __device__ TreeSearch(const FindTreePairs& in, TreeSearchMemory& memory, std::uint32_t begin)
      : in_(in),
        memory_(memory),
        stage_(in.out, memory.stage),
        next_(begin),
        end_(min(begin + in.pool, in.leaves)) {}

  __device__ void run() {
    while (!stage_.isOver()) {
      if (!takeLeaves()) break;
      emit(walkOn());
    }
    if (!stage_.isOver()) stage_.flush();
  }

 private:
  /// Lanes whose walk is over take the next leaves of the pool. The walk of the last leaf of the
  /// tree is over at once. Then the loop runs again.
  /// @return false if all walks are over and no leaf is left
  __device__ bool takeLeaves() {
    for (;;) {
      const std::uint32_t idle = __ballot_sync(kAllLanes, walk_.isOver());
      if (idle == 0 || next_ == end_) return idle != kAllLanes;
      const std::uint32_t leaf = next_ + lanesBefore(idle);
      if (walk_.isOver() && leaf < end_) walk_ = LeafWalk::from(nodeAt(in_.leaves - 1 + leaf));
      next_ = min(next_ + countBits(idle), end_);
    }
  }

  /// Continues the lane's walk for up to kVisits nodes.
  /// @return the number of boxes that the lane has found
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

  /// Stages the pairs that the lanes have found: the first pair of each lane, then the second of
  /// each, and so on.
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
  std::uint32_t next_;  ///< next leaf of the pool
  const std::uint32_t end_;
};

static __global__ void __launch_bounds__(kThreads) findTreePairsKernel(FindTreePairs in) {
  __shared__ TreeSearchMemory memory[kThreads / kWarp];
  const std::uint32_t warp = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  if (std::uint64_t{warp} * in.pool >= in.leaves) return;
  TreeSearch(in, memory[threadIdx.x / kWarp], warp * in.pool).run();
}

}  // namespace lbvh
