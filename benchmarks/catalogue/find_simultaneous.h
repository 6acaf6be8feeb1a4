// SPDX-License-Identifier: Zlib
// All queries at once: pairs of nodes, from the root with itself or, so that there is work for many
// threads, from all 32,896 pairings of a cut of 256 nodes. "Thinking Parallel, Part II". Teaches
// that the least work need not be the least time: on one core it is.
#pragma once

#include "benchmarks/catalogue/find_stack.h"

namespace lbvh::variants {

template <class Counter>
struct FindSimultaneously {
  static constexpr std::uint32_t kCut = 256;
  static constexpr int kCutLevels = 8;
  // A step replaces a pair by two and goes down on one side, or a node with itself by three and
  // goes down on both: two more entries a level at most.
  static constexpr int kMostPairs = 2 * FindByStack<Order::leaves, Counter>::kMostLevels + 4;

  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  struct NodePair {
    std::uint32_t a, b;
  };

  LBVH_HD static std::uint32_t cutPairs() { return kCut * (kCut + 1) / 2; }

  /// Everything below a and b; a is b, or lies before it.
  template <class Sink>
  LBVH_HD void visit(NodePair pair, Sink& sink) const {
    NodePair stack[kMostPairs];
    int postponed = 0;
    for (bool goOn = true; goOn; goOn = postponed > 0 && (pair = stack[--postponed], true)) {
      counter.node();
      const Node &a = nodes[pair.a], &b = nodes[pair.b];
      if (pair.a == pair.b) {
        if (a.isLeaf()) continue;
        const std::uint32_t left = a.left, right = nodes[left].rope;
        stack[postponed++] = NodePair{right, right};
        stack[postponed++] = NodePair{left, right};
        stack[postponed++] = NodePair{left, left};
        continue;
      }
      counter.test();
      if (!overlap(boxOf(a), boxOf(b))) continue;
      if (a.isLeaf() && b.isLeaf()) {
        sink.push(makePair(a.box(), b.box()));
      } else if (!a.isLeaf() && (b.isLeaf() || extent(a) >= extent(b))) {
        stack[postponed++] = NodePair{nodes[a.left].rope, pair.b};
        stack[postponed++] = NodePair{a.left, pair.b};
      } else {
        stack[postponed++] = NodePair{pair.a, nodes[b.left].rope};
        stack[postponed++] = NodePair{pair.a, b.left};
      }
    }
  }

  /// The larger of two nodes is split first.
  LBVH_HD static float extent(const Node& node) {
    return (node.max[0] - node.min[0]) + (node.max[1] - node.min[1]) + (node.max[2] - node.min[2]);
  }

  /// The k-th node of the cut, eight levels below the root; where the tree ends before, the first
  /// path that leads there has it and the others have none.
  LBVH_HD std::uint32_t cutNode(std::uint32_t k) const {
    std::uint32_t at = 0;
    for (int level = kCutLevels - 1; level >= 0; --level) {
      if (nodes[at].isLeaf()) return (k & ((2u << level) - 1)) == 0 ? at : kNullIndex;
      at = (k >> level & 1) != 0 ? nodes[nodes[at].left].rope : nodes[at].left;
    }
    return at;
  }
};

/// One element.
template <class Counter>
struct FindFromRoot : FindSimultaneously<Counter> {
  template <class Sink>
  LBVH_HD void operator()(std::uint32_t, Sink& sink) const {
    this->visit({0, 0}, sink);
  }
};

/// Element i is the pairing of row `a` and column `b` of the triangle b <= a.
template <class Counter>
struct FindFromCut : FindSimultaneously<Counter> {
  template <class Sink>
  LBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    std::uint32_t row = 0;
    while ((row + 1) * (row + 2) / 2 <= i) ++row;
    const std::uint32_t column = i - row * (row + 1) / 2;
    const std::uint32_t a = this->cutNode(column), b = this->cutNode(row);
    if (a != kNullIndex && b != kNullIndex) this->visit({a, b}, sink);
  }
};

template <class Space, class Counter>
void appendFromRoot(const FindProblem<Space>& problem, Counter counter) {
  if (problem.n == 0) return;
  FindFromRoot<Counter> body{{problem.nodes, problem.n, counter}};
  problem.space.append(1, body, problem.out);
}

template <class Space, class Counter>
void appendFromCut(const FindProblem<Space>& problem, Counter counter) {
  if (problem.n == 0) return;
  FindFromCut<Counter> body{{problem.nodes, problem.n, counter}};
  problem.space.append(body.cutPairs(), body, problem.out);
}

}  // namespace lbvh::variants
