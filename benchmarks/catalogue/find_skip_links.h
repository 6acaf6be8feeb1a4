// SPDX-License-Identifier: Zlib
// One query a leaf along the skip links, without a stack (Prokopenko and Lebrun-Grandie, Algorithm
// 1): from the root, and from the query leaf's own link, so that each pair is found once. Shows
// what the start alone saves.
#pragma once

#include "benchmarks/catalogue/find_stack.h"

namespace lbvh::variants {

template <bool kFromRoot, class Counter>
struct FindBySkipLinks {
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    const Node leaf = nodes[n - 1 + i];
    std::uint32_t at = kFromRoot ? 0 : leaf.rope;
    while (at != kNullIndex) {
      counter.node();
      counter.test();
      const Node& node = nodes[at];
      const bool isHit = overlap(leaf, node);
      at = isHit && !node.isLeaf() ? node.left : node.rope;
      if (!isHit || !node.isLeaf()) continue;
      if (!kFromRoot || leaf.box() < node.box()) sink.push(makePair(leaf.box(), node.box()));
    }
  }
};

template <bool kFromRoot, class Space, class Counter>
void appendBySkipLinks(const FindProblem<Space>& problem, Counter counter) {
  problem.space.append(problem.n,
                       FindBySkipLinks<kFromRoot, Counter>{problem.nodes, problem.n, counter},
                       problem.out);
}

}  // namespace lbvh::variants
