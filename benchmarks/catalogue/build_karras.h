// SPDX-License-Identifier: Zlib
// Builds all inner nodes at once: each finds its own range and splits it (Karras 2012; "Thinking
// Parallel, Part III"). Ropes follow from the ranges (Prokopenko and Lebrun-Grandie, Algorithm 2).
// Then the bounds are computed from the leaves up with atomic flags. Teaches why three binary
// searches per node can be faster than one: all nodes are built at the same time.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

/// Thread i makes leaf i and, except for the last thread, inner node i.
struct KarrasNode {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  CommonPrefix prefix;
  std::uint32_t* parents;
  std::uint32_t* flags;
  Node* nodes;

  GPULBVH_HD void operator()(std::uint32_t i) const {
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
  std::uint32_t* parents =
      scratch.template lend<std::uint32_t>("parents", 2 * std::size_t{n}).data();
  std::uint32_t* flags = scratch.template lend<std::uint32_t>("flags", n).data();
  problem.space.forEach(
      problem.n,
      KarrasNode{problem.boxes, problem.ids, {problem.codes, n}, parents, flags, problem.nodes});
  problem.space.forEach(problem.n, BoundsByFlags{parents, flags, problem.nodes, n});
}

}  // namespace lbvh::variants
