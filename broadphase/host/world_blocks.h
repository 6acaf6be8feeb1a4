// SPDX-License-Identifier: Zlib
// Packs the boxes of many worlds, of each into a tree of its own (block_tree.h). Small worlds are
// packed side by side, each by one thread; large ones one after the other, by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broadphase/host/block_tree.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/world_order.h"

namespace lbvh {

/// The boxes of one world, or those that are in all worlds.
struct World {
  std::uint32_t rank;       ///< as GatherBoxes says
  View<std::uint32_t> ids;  ///< in the order in which they are packed
  PackedBoxes packed = {};
  Aabb bounds = {};  ///< of what is in the tree, if anything is

  /// What is searched for at once: a leaf block, or an oversized box behind those.
  std::size_t units() const { return packed.tree.leafBlocks + packed.oversized.size; }
  std::size_t firstUnit = 0;  ///< among those of all worlds
};

/// Boxes as GatherBoxes has packed them.
struct RankedBoxes {
  View<const Aabb> boxes;
  View<const Filter> filters;  ///< by box, or empty
  const std::uint32_t* ranks;  ///< null: all 0, but of boxes with a NaN
  std::uint32_t worldCount;
};

class WorldBlocks {
 public:
  WorldBlocks(HostTasks& tasks, const SimdKernels& kernels);
  ~WorldBlocks();

  /// @param boxes are read by queries, too
  void build(const RankedBoxes& boxes);
  /// There are no boxes, and no worlds.
  void clear();

  /// Those that have boxes, by rank.
  View<const World> worlds() const { return {worlds_.data(), worlds_.size()}; }
  /// @return null if it has no boxes
  const World* find(std::uint32_t rank) const;
  /// How many worlds there may be; the rank of boxes that are in all.
  std::uint32_t worldCount() const { return worldCount_; }
  /// Boxes that overlap nothing.
  View<const std::uint32_t> nowhere() const { return nowhere_; }
  /// Of all worlds.
  std::size_t units() const;

 private:
  struct Worker;

  void listAll(const RankedBoxes& boxes);
  void listByRank(const RankedBoxes& boxes);
  void lendBlocks(const RankedBoxes& boxes);
  void pack(World& world, HostTasks& tasks, WorldOrder& order);
  void packSmall(std::size_t most);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  WorldOrder order_;
  HostRadixSort sort_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<World> worlds_;
  std::uint32_t worldCount_ = 0;
  View<const std::uint32_t> nowhere_;
  HostBuffer<std::uint32_t> ids_;
  HostBuffer<std::uint64_t> words_, spare_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_;
};

}  // namespace lbvh
