// Boxes packed into blocks of sixteen (host/block_tree.h), in memory of its own, from which single
// boxes can be taken out again. Does not search.
#pragma once

#include <cstdint>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class BlockBuilder {
 public:
  explicit BlockBuilder(HostTasks& tasks) : tasks_(tasks), kernels_(simdKernels()) {}

  /// @param ids of the boxes along a curve, then of the oversized boxes, then of those with a NaN
  void pack(View<const Aabb> boxes, View<const Filter> filters, const std::uint32_t* ids,
            const SceneBounds& scene);

  /// Takes boxes out; the bounds above them stay as they are.
  /// @param ids sorted
  void remove(View<const std::uint32_t> ids);

  /// The arrays of the boxes have moved; the boxes that are packed are the same.
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
