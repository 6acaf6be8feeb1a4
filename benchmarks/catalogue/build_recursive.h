// SPDX-License-Identifier: Zlib
// Builds top-down by recursion ("Thinking Parallel, Part III"). Runs only on the host. It is the
// reference for the parallel builders. A range of equal codes is split by the bits of the positions
// instead of in the middle, so that all builders make the same tree.
#pragma once

#include "benchmarks/catalogue/radix_tree.h"
#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

struct RecursiveBuilder {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  CommonPrefix prefix;
  Node* nodes;

  /// Builds the subtree over a range. Its root is node `at`. `rope` is the node after the subtree.
  void build(std::uint32_t at, Range range, std::uint32_t rope) const {
    if (range.first == range.last) {
      nodes[at] = leafOver(boxes, ids[range.first], rope);
      return;
    }
    const Numbering tree{prefix.n};
    const std::uint32_t split = findSplit(prefix, range);
    const std::uint32_t left = tree.leftChild(range.first, split);
    const std::uint32_t right = tree.rightChild(split, range.last);
    build(left, {range.first, split}, right);
    build(right, {split + 1, range.last}, rope);
    Node node{};
    unite(node, nodes[left], nodes[right]);
    node.left = left;
    node.rope = rope;
    nodes[at] = node;
  }
};

template <class Space>
void buildRecursively(BuildProblem<Space>& problem) {
  const auto n = problem.n;
  if (n == 0) return;
  RecursiveBuilder{problem.boxes, problem.ids, {problem.codes, n}, problem.nodes}.build(
      0, {0, n - 1}, kNullIndex);
}

}  // namespace lbvh::variants
