// Stage 5: overlapping pairs from the tree, each once, in no particular order.
// Emits into whatever sink the space offers; sorting is stage 6.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Ordered half-pairs without a stack (Prokopenko and Lebrun-Grandie, Algorithm 1, started at the
/// query leaf's own rope): element i is leaf i of n and meets only what lies to its right, so a
/// pair is found once and nothing to the left is visited.
struct FindTreePairs {
  const Node* nodes;
  std::uint32_t n;
  View<const Filter> filters;  ///< by box, or empty: all pairs are wanted

  LBVH_HD std::uint32_t elements() const { return n; }

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t leaf, Sink& sink) const {
    const Node query = nodes[n - 1 + leaf];
    const std::uint32_t box = query.box();
    std::int32_t at = query.rope;
    while (at != kSentinel) {
      const Node& node = nodes[at];
      if (!overlap(query, node)) {
        at = node.rope;
      } else if (!node.isLeaf()) {
        at = node.left;
      } else {
        at = node.rope;
        const std::uint32_t other = node.box();
        if (!filters.empty() && !wanted(filters[box], filters[other])) continue;
        if (!sink.push(makePair(box, other))) return;
      }
    }
  }
};

/// The side list against everything: element k is the k-th of the `ids` (n in the tree, then the
/// side boxes) and meets the side boxes behind it.
struct FindSidePairs {
  View<const Aabb> boxes;
  View<const std::uint32_t> ids;
  std::uint32_t n;
  View<const Filter> filters;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t k, Sink& sink) const {
    const std::uint32_t box = ids[k];
    for (std::size_t side = k < n ? n : k + 1; side < ids.size; ++side) {
      const std::uint32_t other = ids[side];
      if (!overlap(boxes[box], boxes[other])) continue;
      if (!filters.empty() && !wanted(filters[box], filters[other])) continue;
      if (!sink.push(makePair(box, other))) return;
    }
  }
};

}  // namespace lbvh
