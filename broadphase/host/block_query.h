// SPDX-License-Identifier: Zlib
// Queries of the blocks of boxes that a step's search left behind; they need no tree. Host only.
#pragma once

#include <cstdint>

#include "broadphase/host/block_tree.h"
#include "broadphase/types.h"

namespace lbvh {

/// Calls visit(box index) for each box in the blocks for which hits(Aabb) is true. The order is
/// unspecified. `hits` must be true for bounds that contain a box it is true for.
template <class Hits, class Visit>
void queryBlocks(const BlockTree& tree, const Hits& hits, const Visit& visit) {
  std::uint32_t stack[7 * kLanes];  // at most seven levels for 2^30 boxes
  std::uint32_t depth = 0;
  if (tree.boxes > 0) stack[depth++] = tree.root;
  while (depth > 0) {
    const std::uint32_t index = stack[--depth];
    const BoxBlock& block = tree.blocks[index];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t child = block.child[lane];
      if (child == kNullIndex || !hits(block.box(lane))) continue;
      if (index < tree.leafBlocks)
        visit(child);
      else
        stack[depth++] = child;
    }
  }
}

/// The same for all packed boxes, those that are kept out of the blocks untested. A NaN box is
/// never visited.
template <class Hits, class Visit>
void queryPacked(const PackedBoxes& packed, const Hits& hits, const Visit& visit) {
  queryBlocks(packed.tree, hits, visit);
  for (const std::uint32_t box : packed.oversized) visit(box);
}

}  // namespace lbvh
