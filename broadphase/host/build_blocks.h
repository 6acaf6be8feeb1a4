// Boxes packed into blocks of sixteen (host/block_tree.h), in memory of its own, from which single
// boxes can be taken out again. Does not search.
#pragma once

#include <cstdint>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class HostPacking {
 public:
  explicit HostPacking(HostTasks& tasks) : tasks_(tasks), kernels_(hostKernels()) {}

  /// @param ids of the boxes along a curve, then of the side boxes, then of those with a NaN
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

  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  HostTasks& tasks_;
  const HostKernels& kernels_;
  PackedBoxes packed_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_;
  HostBuffer<std::uint32_t> others_;  ///< the side boxes, then those with a NaN
  HostBuffer<std::uint32_t> places_;  ///< by box: its leaf, or kNowhere
  bool knowsPlaces_ = false;
};

}  // namespace lbvh
