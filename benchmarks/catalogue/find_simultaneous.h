// SPDX-License-Identifier: Zlib
// Runs all queries at once by visiting pairs of nodes ("Thinking Parallel, Part II"). One variant
// starts with the pair (root, root). The other starts with all 32,896 pairs of the 256 nodes eight
// levels below the root (the cut), so that there is work for many threads. Teaches that the fewest
// tests need not take the shortest time: on one core a search by skip links from the leaf
// (find_skip_links.h) is faster.
#pragma once

#include "benchmarks/catalogue/find_stack.h"

namespace lbvh::variants {

template <class Counter>
struct FindSimultaneously {
  static constexpr std::uint32_t kCut = 256;
  static constexpr int kCutLevels = 8;
  // An iteration of visit() replaces a pair by two pairs, one level lower on one side. If both
  // nodes are the same, it makes three pairs, one level lower on both sides. So each level adds at
  // most two entries.
  static constexpr int kMaxPairs = 2 * FindByStack<Order::leaves, Counter>::kMaxLevels + 4;

  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  struct NodePair {
    std::uint32_t a, b;
  };

  GPULBVH_HD static std::uint32_t cutPairs() { return kCut * (kCut + 1) / 2; }

  /// Finds the overlapping pairs with one leaf below node `pair.a` and the other below `pair.b`.
  /// Both nodes must be the same, or the leaves of `pair.a` must come before those of `pair.b`.
  template <class Sink>
  GPULBVH_HD void visit(NodePair pair, Sink& sink) const {
    NodePair stack[kMaxPairs];
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

  /// The size of a node. Of two nodes the larger one is split first.
  GPULBVH_HD static float extent(const Node& node) {
    return (node.max[0] - node.min[0]) + (node.max[1] - node.min[1]) + (node.max[2] - node.min[2]);
  }

  /// The k-th node of the cut, eight levels below the root. Several paths may end in one leaf above
  /// that level: the first path gets the leaf, and the others get kNullIndex.
  GPULBVH_HD std::uint32_t cutNode(std::uint32_t k) const {
    std::uint32_t at = 0;
    for (int level = kCutLevels - 1; level >= 0; --level) {
      if (nodes[at].isLeaf()) return (k & ((2u << level) - 1)) == 0 ? at : kNullIndex;
      at = (k >> level & 1) != 0 ? nodes[nodes[at].left].rope : nodes[at].left;
    }
    return at;
  }
};

/// Starts with the pair (root, root). Must run for one element only.
template <class Counter>
struct FindFromRoot : FindSimultaneously<Counter> {
  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t, Sink& sink) const {
    this->visit({0, 0}, sink);
  }
};

/// Thread i takes the i-th entry, row by row, of the triangle column <= row. It starts with nodes
/// `column` and `row` of the cut.
template <class Counter>
struct FindFromCut : FindSimultaneously<Counter> {
  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
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
