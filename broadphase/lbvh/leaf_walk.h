// SPDX-License-Identifier: Zlib
// Walks from one leaf over the nodes after it, along the ropes. This is stage 5. A walk needs no
// stack. The walks from all leaves together find each pair once. A walk is Algorithm 1 of
// Prokopenko and Lebrun-Grandie, started at the leaf's own rope. The caller stores the pairs.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// The state of a walk. On the host a loop runs a walk to its end. On a GPU each lane of a warp has
/// its own walk.
struct LeafWalk {
  float min[3], max[3];           ///< corners of the leaf's box
  std::uint32_t box;              ///< index of the leaf's box
  std::uint32_t at = kNullIndex;  ///< the node to visit next

  /// Starts at a leaf's own rope. The walk covers all leaves that are later in the order. So each
  /// pair is found once, by the walk of its earlier leaf.
  GPULBVH_HD static LeafWalk from(const Node& leaf) {
    return {{leaf.min[0], leaf.min[1], leaf.min[2]},
            {leaf.max[0], leaf.max[1], leaf.max[2]},
            leaf.box(),
            leaf.rope};
  }

  GPULBVH_HD bool isOver() const { return at == kNullIndex; }

  /// Continues from the node `at`: down if it is an inner node that overlaps, else along the rope.
  /// The walk must not be over.
  /// @return whether the node is a leaf that overlaps
  GPULBVH_HD bool visit(const Node& node) {
    const bool hits = overlap(*this, node), isLeaf = node.isLeaf();
    at = hits && !isLeaf ? node.left : node.rope;
    return hits && isLeaf;
  }
};

}  // namespace lbvh
