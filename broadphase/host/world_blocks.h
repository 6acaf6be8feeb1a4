// SPDX-License-Identifier: Zlib
// Packs the boxes of many worlds, with a tree for each world (block_tree.h). Small worlds are
// packed in parallel, each by one thread. Large worlds are packed one after the other, by all
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broadphase/host/block_tree.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

/// The boxes of one world, or those that are in all worlds.
struct World {
  std::uint32_t rank;       ///< as in GatherBoxes
  View<std::uint32_t> ids;  ///< indices of the boxes, in the order in which they are packed
  PackedBoxes packed = {};
  Aabb bounds = {};  ///< bounds of the tree, unless it is empty
};

/// The results of GatherBoxes.
struct RankedBoxes {
  View<const Aabb> boxes;
  View<const Filter> filters;  ///< by box, or empty
  const std::uint32_t* ranks;  ///< by box; null: all boxes are in world 0
  std::uint32_t worldCount;
};

class WorldBlocks {
 public:
  WorldBlocks(HostSpace& space, const SimdKernels& kernels);
  ~WorldBlocks();

  /// @param boxes must stay valid, because queries read them, too
  void build(const RankedBoxes& boxes);
  void clear();

  /// The worlds that have boxes, sorted by rank.
  View<const World> worlds() const { return {worlds_.data(), worlds_.size()}; }
  /// @return null if the world has no boxes
  const World* find(std::uint32_t rank) const;
  /// Number of possible worlds. It is also the rank of boxes that are in all worlds.
  std::uint32_t worldCount() const { return worldCount_; }
  /// Boxes that are in no world. They overlap nothing.
  View<const std::uint32_t> nowhere() const { return nowhere_; }

 private:
  class Packer;
  struct Worker;

  void listAll(const RankedBoxes& boxes);
  void listByRank(const RankedBoxes& boxes);
  void lendBlocks(const RankedBoxes& boxes);
  void packSmall(std::size_t most);

  HostTasks& tasks_;
  HostRadixSort sort_;
  std::unique_ptr<Packer> ofLarge_;               ///< uses all threads
  std::vector<std::unique_ptr<Worker>> workers_;  ///< one for each thread
  std::vector<World> worlds_;
  std::uint32_t worldCount_ = 0;
  View<const std::uint32_t> nowhere_;
  HostBuffer<std::uint32_t> ids_;
  HostBuffer<std::uint64_t> words_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_;
};

}  // namespace lbvh
