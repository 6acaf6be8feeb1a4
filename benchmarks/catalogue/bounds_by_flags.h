// SPDX-License-Identifier: Zlib
// Bounds for a tree whose topology is there: one thread a leaf walks to the root; at each inner
// node the first to arrive stops and the second, which finds both children done, goes on. (Karras
// 2012; "Thinking Parallel, Part III".)
#pragma once

#include "benchmarks/catalogue/radix_tree.h"
#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

struct BoundsByFlags {
  const std::uint32_t* parents;  ///< by node; of the root: kNullIndex
  std::uint32_t* flags;          ///< by inner node, all kNullIndex
  Node* nodes;
  std::uint32_t n;

  LBVH_HD void operator()(std::uint32_t leaf) const {
    std::uint32_t at = parents[n - 1 + leaf];
    while (at != kNullIndex && exchangeAndPublish(&flags[at], 1) != kNullIndex) {
      Node& node = nodes[at];
      const Node& left = nodes[node.left];
      unite(node, left, nodes[left.rope]);  // the rope of a left child is its sibling
      at = parents[at];
    }
  }
};

struct Fill {
  std::uint32_t* numbers;
  std::uint32_t value;
  LBVH_HD void operator()(std::uint32_t i) const { numbers[i] = value; }
};

}  // namespace lbvh::variants
