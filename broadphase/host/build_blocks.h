// Stage 4 of a step on the host, over its threads: packs boxes into blocks of sixteen
// (block_tree.h), in memory of its own. Single boxes can be taken out again. The inner loops are in
// simd/pack.inl.
#pragma once

#include <cstdint>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class BlockBuilder {
 public:
  BlockBuilder(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// @param ids of the boxes along a curve, then of the oversized boxes, then of those with a NaN
  /// @param inIndexOrder whether the ordinary boxes are in that order instead
  void pack(View<const Aabb> boxes, View<const Filter> filters, const std::uint32_t* ids,
            const SceneBounds& scene, bool inIndexOrder);

  /// Takes boxes out. The bounds above them stay as they are.
  /// @param ids sorted
  void remove(View<const std::uint32_t> ids);

  /// The caller's arrays have moved in memory. The packed boxes stay the same.
  void rebind(View<const Aabb> boxes, View<const Filter> filters);

  const PackedBoxes& packed() const { return packed_; }
  std::size_t memoryBytes() const;

 private:
  void findPlaces();
  void packParents();

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  PackedBoxes packed_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_;
  HostBuffer<std::uint32_t> others_;  ///< the oversized boxes, then those with a NaN
  HostBuffer<std::uint32_t> places_;  ///< by box: its leaf, or kNullIndex
  bool knowsPlaces_ = false;
};

}  // namespace lbvh
