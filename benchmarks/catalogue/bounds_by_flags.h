// SPDX-License-Identifier: Zlib
// Computes the bounds of a tree whose topology is known (Karras 2012; "Thinking Parallel, Part
// III"). One thread per leaf walks to the root. At each inner node the first thread that arrives
// stops. The second thread goes on, because the bounds of both children are then known.
#pragma once

#include "benchmarks/catalogue/radix_tree.h"
#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

struct BoundsByFlags {
  const std::uint32_t* parents;  ///< by node: its parent; kNullIndex for the root
  std::uint32_t* flags;          ///< by inner node; the caller must set them to kNullIndex
  Node* nodes;
  std::uint32_t n;

  GPULBVH_HD void operator()(std::uint32_t leaf) const {
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
  GPULBVH_HD void operator()(std::uint32_t i) const { numbers[i] = value; }
};

}  // namespace lbvh::variants
