// Bounds for a tree whose topology is there: one thread a leaf walks to the root; at each inner
// node the first to arrive stops and the second, which finds both children done, goes on. (Karras
// 2012; "Thinking Parallel, Part III".)
#pragma once

#include "broadphase/variants/radix_tree.h"
#include "broadphase/variants/variant.h"

namespace lbvh::variants {

struct BoundsByFlags {
  const std::int32_t* parents;  ///< by node; of the root: kSentinel
  std::int32_t* flags;          ///< by inner node, all kNobody
  Node* nodes;
  std::int32_t n;

  LBVH_HD void operator()(std::uint32_t leaf) const {
    std::int32_t at = parents[n - 1 + static_cast<std::int32_t>(leaf)];
    while (at != kSentinel && exchangeAndPublish(&flags[at], 1) != kNobody) {
      Node& node = nodes[at];
      const Node& left = nodes[node.left];
      unite(node, left, nodes[left.rope]);  // the rope of a left child is its sibling
      at = parents[at];
    }
  }
};

struct Fill {
  std::int32_t* numbers;
  std::int32_t value;
  LBVH_HD void operator()(std::uint32_t i) const { numbers[i] = value; }
};

}  // namespace lbvh::variants
