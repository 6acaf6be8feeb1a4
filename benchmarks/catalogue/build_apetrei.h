// SPDX-License-Identifier: Zlib
// Builds bottom-up in one pass, and numbers inner nodes by their splits (Apetrei 2014; Prokopenko
// and Lebrun-Grandie, Algorithm 3). The tree is the same as with the other builders, except for the
// numbers. Siblings are not adjacent and any node may be the root, so there are no ropes.
// Production (lbvh/hierarchy.h) uses this algorithm, and restores Karras's numbers.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

/// Thread i starts at leaf i. With this builder, an inner node's `rope` is its right child, and
/// leaves do not use `rope`.
struct ApetreiNode {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  Difference<std::uint32_t> difference;
  std::uint32_t*
      /// By split: the outer end of the range of the first child that arrives. The caller must set
      /// all elements to kNullIndex.
      ends;
  std::uint32_t* root;
  Node* nodes;

  GPULBVH_HD void operator()(std::uint32_t element) const {
    const std::uint32_t n = difference.n;
    std::uint32_t first = element, last = first;
    std::uint32_t at = n - 1 + first;
    nodes[at] = leafOver(boxes, ids[first], kNullIndex);
    while (first != 0 || last != n - 1) {
      const bool isLeft = difference(last) < difference(first - 1);
      const std::uint32_t parent = isLeft ? last : first - 1;
      (isLeft ? nodes[parent].left : nodes[parent].rope) = at;
      const std::uint32_t other = exchangeAndPublish(&ends[parent], isLeft ? first : last);
      if (other == kNullIndex) return;
      (isLeft ? last : first) = other;
      unite(nodes[parent], nodes[nodes[parent].left], nodes[nodes[parent].rope]);
      at = parent;
    }
    *root = at;
  }
};

/// Builds the tree, and writes the root's number to memory.root.
template <class Space>
void buildApetrei(BuildProblem<Space>& problem) {
  const auto n = problem.n;
  if (n == 0) return;
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<std::uint32_t>(n));
  std::uint32_t* ends = scratch.template lend<std::uint32_t>("ends", n).data();
  std::uint32_t* root = problem.memory.root.ensure(1).data();
  problem.space.forEach(problem.n, Fill{ends, kNullIndex});
  problem.space.forEach(
      problem.n,
      ApetreiNode{problem.boxes, problem.ids, {problem.codes, n}, ends, root, problem.nodes});
}

}  // namespace lbvh::variants
