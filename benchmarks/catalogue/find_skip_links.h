// SPDX-License-Identifier: Zlib
// Searches by skip links, as a step over a binary tree does (lbvh/leaf_walk.h), with one thread per
// leaf. One variant starts at the root (Prokopenko and Lebrun-Grandie, Algorithm 1). The other
// starts at the leaf's own link, as the step does, so that each pair is found once. Teaches how
// much work the start at the leaf saves.
#pragma once

#include "benchmarks/catalogue/variant.h"
#include "broadphase/lbvh/leaf_walk.h"

namespace lbvh::variants {

template <bool kFromRoot, class Counter>
struct FindBySkipLinks {
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    LeafWalk walk = LeafWalk::from(nodes[n - 1 + i]);
    if (kFromRoot) walk.at = 0;
    while (!walk.isOver()) {
      counter.node();
      counter.test();
      const Node& node = nodes[walk.at];
      if (walk.visit(node) && (!kFromRoot || walk.box < node.box()))
        sink.push(makePair(walk.box, node.box()));
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
