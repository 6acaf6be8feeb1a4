// SPDX-License-Identifier: Zlib
// Stage 4 of a step on the host, over its threads: packs boxes into blocks of sixteen
// (block_tree.h), in memory of its own. Single boxes can be replaced. The inner loops are in
// simd/pack.inl.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/core/step_header.h"
#include "broadphase/host/block_wear.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

/// Packs the ordinary boxes, the first in `ids`, into the blocks that `packed` has room for.
void packBlocks(HostTasks& tasks, const SimdKernels& kernels, const PackedBoxes& packed,
                const std::uint32_t* ids);

class BlockBuilder {
 public:
  BlockBuilder(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// @param ids of the boxes along a curve, then of the oversized boxes, then of those with a NaN
  /// @param inIndexOrder whether the ordinary boxes are in that order instead
  void pack(View<const Aabb> boxes, View<const Filter> filters, const std::uint32_t* ids,
            const SceneBounds& scene, bool inIndexOrder);

  /// Some boxes and filters are others now, and there may be more boxes. Those that are packed keep
  /// their places, and the bounds above them are made anew; others are kept beside the tree.
  /// @param ids in the order of placeOf()
  /// @return false if too many would be beside the tree: then all must be packed
  bool replace(View<const std::uint32_t> ids, View<const Aabb> boxes, View<const Filter> filters);

  /// Boxes of similar places lie near each other. Those that are not in the tree are behind it.
  /// After findPlaces().
  std::uint32_t placeOf(std::uint32_t id) const;
  void findPlaces();

  /// Whether replaced boxes have made the blocks so wide that they should be packed again. Once a
  /// step. Boxes in index order are few, and packing does not make their blocks tighter.
  bool wears() {
    if (!knowsPlaces_ || packed_.tree.isInIndexOrder) return false;
    wear_.endStep();
    return wear_.isDue();
  }

  const PackedBoxes& packed() const { return packed_; }
  std::size_t memoryBytes() const;

 private:
  static constexpr std::size_t kMostBeside = 64;  ///< more than there were oversized boxes
  static constexpr std::uint32_t kBeside = kNullIndex - 1;

  bool replaceLeaf(std::uint32_t id);
  bool replaceBeside(std::uint32_t id);
  bool keepBeside(std::uint32_t id);
  void dropFromBeside(std::uint32_t id);
  void setLeaf(std::uint32_t leaf, std::uint32_t id);
  void packBoundsOf(View<const std::uint32_t> ids);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  PackedBoxes packed_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_;
  HostBuffer<std::uint32_t> others_;  ///< the oversized boxes, room for more, those with a NaN
  std::size_t roomBeside_ = 0;
  std::vector<std::uint32_t> places_;   ///< by box: its leaf, kBeside, or kNullIndex
  std::vector<std::uint32_t> touched_;  ///< blocks whose bounds have changed
  BlockWear wear_;                      ///< known after findPlaces()
  bool knowsPlaces_ = false;
};

}  // namespace lbvh
