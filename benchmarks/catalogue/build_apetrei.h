// SPDX-License-Identifier: Zlib
// Bottom up in one pass, inner nodes numbered by their splits (Apetrei 2014; Prokopenko and
// Lebrun-Grandie, Algorithm 3). The tree of the others, but for the numbers: siblings lie apart,
// the root may be anywhere, and so there are no ropes. Production (lbvh/hierarchy.h) is this with
// Karras's numbers restored.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

/// Element i starts at leaf i. In an inner node `rope` is the right child here, in a leaf nothing.
struct ApetreiNode {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  Difference<std::uint32_t> difference;
  std::uint32_t* ends;  ///< by split: what the first child to arrive leaves; all kNullIndex
  std::uint32_t* root;
  Node* nodes;

  LBVH_HD void operator()(std::uint32_t element) const {
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

/// The root's number goes to memory.root.
template <class Space>
void buildApetrei(BuildProblem<Space>& problem) {
  const auto n = problem.n;
  if (n == 0) return;
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<std::uint32_t>(n));
  std::uint32_t* ends = scratch.template lend<std::uint32_t>("ends", n).data;
  std::uint32_t* root = problem.memory.root.ensure(1).data;
  problem.space.forEach(problem.n, Fill{ends, kNullIndex});
  problem.space.forEach(
      problem.n,
      ApetreiNode{problem.boxes, problem.ids, {problem.codes, n}, ends, root, problem.nodes});
}

}  // namespace lbvh::variants
