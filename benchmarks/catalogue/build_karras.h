// SPDX-License-Identifier: Zlib
// Every inner node at once: each finds its own range, and splits it (Karras 2012; "Thinking
// Parallel, Part III"); ropes from the ranges (Prokopenko and Lebrun-Grandie, Algorithm 2); then
// bounds from the leaves by atomic flags. Teaches why three binary searches a node beat one, where
// all run at once.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

/// Element i is leaf i and, except for the last, inner node i.
struct KarrasNode {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  CommonPrefix prefix;
  std::uint32_t* parents;
  std::uint32_t* flags;
  Node* nodes;

  LBVH_HD void operator()(std::uint32_t i) const {
    const Numbering tree{prefix.n};
    nodes[tree.leaf(i)] = leafOver(boxes, ids[i], ropeBehind(prefix, i));
    if (i == 0) parents[0] = kNullIndex;
    if (i >= prefix.n - 1) return;
    const Range range = determineRange(prefix, i);
    const std::uint32_t split = findSplit(prefix, range);
    const std::uint32_t left = tree.leftChild(range.first, split);
    nodes[i].left = left;
    nodes[i].rope = ropeBehind(prefix, range.last);
    flags[i] = kNullIndex;
    parents[left] = parents[tree.rightChild(split, range.last)] = i;
  }
};

template <class Space>
void buildKarras(BuildProblem<Space>& problem) {
  const auto n = problem.n;
  if (n == 0) return;
  auto& scratch = problem.memory.scratch;
  scratch.reset(3 * scratchBytes<std::uint32_t>(n));
  std::uint32_t* parents = scratch.template lend<std::uint32_t>("parents", 2 * std::size_t{n}).data;
  std::uint32_t* flags = scratch.template lend<std::uint32_t>("flags", n).data;
  problem.space.forEach(
      problem.n,
      KarrasNode{problem.boxes, problem.ids, {problem.codes, n}, parents, flags, problem.nodes});
  problem.space.forEach(problem.n, BoundsByFlags{parents, flags, problem.nodes, n});
}

}  // namespace lbvh::variants
