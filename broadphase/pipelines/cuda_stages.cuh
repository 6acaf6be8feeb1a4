// Stages 1 to 6 on an NVIDIA GPU, each launched for what the plan says (cuda_step_plan.h), and the
// buffers between them. Base of cuda.cuh and cuda_device.cuh.
#pragma once

#include <bit>
#include <cstdint>

#include "broadphase/exec/cuda/space.cuh"
#include "broadphase/pipelines/cuda_step_plan.h"
#include "broadphase/pipelines/tree_stages.h"
#include "broadphase/stages/traversal.h"

namespace lbvh {

class CudaStages : protected TreeStages<CudaSpace> {
 protected:
  explicit CudaStages(const CudaSpaceOptions& options) : TreeStages(options) {}
  ~CudaStages() = default;

  /// What 32 bits can count, of what the caller allows.
  static std::uint64_t limitOf(std::uint64_t maxPairs) {
    return std::min<std::uint64_t>(maxPairs, CudaSpace::kMostElements);
  }

  /// Stages 1 to 4.
  void runTreeStages(View<const Aabb> boxes, const StepArguments* arguments, StepStats& stats) {
    measure(boxes, arguments, stats);
    if (plan_.bits == 10)
      buildNodes<std::uint32_t>(boxes, boxes.size, stats);
    else
      buildNodes<std::uint64_t>(boxes, boxes.size, stats);
  }

  /// Stage 5.
  View<Pair> traverse(const StepInput& there, StepStats& stats) {
    const auto timer = space_.timed("traversal", stats.traversalMs);
    const std::size_t n = there.boxes.size;
    const View<Pair> room = pairBuffer(1).ensure(plan_.pairs);
    const PairOutput out{room, there.maxPairs, &header()->pairs};
    const FindTreePairs treePairs{nodes_.data, &header()->scene, there.filters};
    const FindOversizedPairs oversizedPairs{there.boxes, ids_.data(), &header()->scene,
                                            there.filters};
    space_.append(n, OneAfterTheOther<FindTreePairs, FindOversizedPairs>{treePairs, oversizedPairs},
                  out);
    return room;
  }

  /// Stage 6. @return in one of the two buffers behind the current one
  View<Pair> sortPairs(View<Pair> found, std::size_t boxes, StepStats& stats) {
    const auto timer = space_.timed("pair sort", stats.pairSortMs);
    const auto idBits = static_cast<int>(std::bit_width(boxes > 0 ? boxes - 1 : 0));
    return space_.sortPairs(found, pairBuffer(2).ensure(found.size), idBits, &header()->pairs);
  }

  /// Of the three buffers the k-th behind the one that has the last step's pairs.
  Buffer<Pair>& pairBuffer(int k) { return pairBuffers_[(currentBuffer_ + k) % 3]; }

  StepPlan plan_;
  Buffer<Pair> pairBuffers_[3] = {Buffer<Pair>(space_.memory()), Buffer<Pair>(space_.memory()),
                                  Buffer<Pair>(space_.memory())};
  int currentBuffer_ = 0;
};

}  // namespace lbvh
