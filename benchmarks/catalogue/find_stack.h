// SPDX-License-Identifier: Zlib
// One query a box, with a stack: by recursion, and explicitly in three steps: in the order of the
// objects, in the order of the leaves, and in that order without what lies left of the query.
// "Thinking Parallel, Part II". Teaches what divergence costs, and that half the work is enough.
#pragma once

#include "benchmarks/catalogue/variant.h"
#include "broadphase/core/morton.h"

namespace lbvh::variants {

/// The last leaf below a node, from its rope: the one before the node that the rope leads to.
struct LastLeaf {
  const Node* nodes;
  std::uint32_t n;

  LBVH_HD std::uint32_t operator()(std::uint32_t node) const {
    if (node >= n - 1) return node - (n - 1);
    const std::uint32_t rope = nodes[node].rope;
    if (rope == kNullIndex) return n - 1;
    return (rope >= n - 1 ? rope - (n - 1) : rope) - 1;
  }
};

/// What all four ask of a node. Inverted boxes may miss their own subtree's bounds and themselves,
/// which is why a query that looks at both sides keeps the pairs where its box comes first.
template <class Sink>
struct Query {
  Aabb box;
  std::uint32_t id;
  Sink& sink;

  LBVH_HD bool hits(const Node& node) const { return overlap(box, node); }
  LBVH_HD void keepIfFirst(std::uint32_t other) const {
    if (id < other) sink.push({id, other});
  }
};

/// A node without its links is a box.
LBVH_HD inline Aabb boxOf(const Node& node) {
  return {{node.min[0], node.min[1], node.min[2]}, {node.max[0], node.max[1], node.max[2]}};
}

template <class Counter>
struct FindRecursively {
  View<const Aabb> boxes;
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t object, Sink& sink) const {
    const Aabb box = boxes[object];
    if (classify(box) == BoxClass::ordinary) visit(0, Query<Sink>{box, object, sink});
  }

  template <class Sink>
  LBVH_HD void visit(std::uint32_t at, const Query<Sink>& query) const {
    counter.node();
    counter.test();
    const Node& node = nodes[at];
    if (!query.hits(node)) return;
    if (node.isLeaf()) return query.keepIfFirst(node.box());
    visit(node.left, query);
    visit(nodes[node.left].rope, query);
  }
};

enum class Order { objects, leaves, leavesHalf };

/// The loop of all three explicit stacks: one round for each inner node that the query meets.
template <Order kOrder, class Counter>
struct FindByStack {
  // A subtree postponed on each level: as many levels as a key and a position have bits.
  static constexpr int kMostLevels = 30 + 31;

  View<const Aabb> boxes;
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    if constexpr (kOrder == Order::objects) {
      const Aabb box = boxes[i];
      if (classify(box) == BoxClass::ordinary) visit(Query<Sink>{box, i, sink}, kNullIndex);
    } else {
      const Node& leaf = nodes[n - 1 + i];
      visit(Query<Sink>{boxOf(leaf), leaf.box(), sink}, i);
    }
  }

  template <class Sink>
  LBVH_HD void visit(const Query<Sink>& query, std::uint32_t queryLeaf) const {
    std::uint32_t stack[kMostLevels];
    int postponed = 0;
    std::uint32_t at = n > 1 ? 0 : kNullIndex;
    while (at != kNullIndex) {
      counter.node();
      const std::uint32_t left = nodes[at].left, right = nodes[left].rope;
      const bool goLeft = look(query, queryLeaf, left), goRight = look(query, queryLeaf, right);
      if (goLeft && goRight) stack[postponed++] = right;
      at = goLeft ? left : goRight ? right : postponed > 0 ? stack[--postponed] : kNullIndex;
    }
  }

  /// True if the traversal has to go on below; pairs of leaves are dealt with here.
  template <class Sink>
  LBVH_HD bool look(const Query<Sink>& query, std::uint32_t queryLeaf, std::uint32_t at) const {
    if constexpr (kOrder == Order::leavesHalf)
      if (LastLeaf{nodes, n}(at) <= queryLeaf) return false;
    counter.test();
    const Node& node = nodes[at];
    if (!query.hits(node)) return false;
    if (!node.isLeaf()) return true;
    if constexpr (kOrder == Order::leavesHalf)
      query.sink.push(makePair(query.id, node.box()));
    else
      query.keepIfFirst(node.box());
    return false;
  }
};

template <class Space, class Counter>
void appendRecursively(const FindProblem<Space>& problem, Counter counter) {
  if (problem.n == 0) return;
  problem.space.append(problem.boxes.size,
                       FindRecursively<Counter>{problem.boxes, problem.nodes, problem.n, counter},
                       problem.out);
}

template <Order kOrder, class Space, class Counter>
void appendByStack(const FindProblem<Space>& problem, Counter counter) {
  problem.space.append(
      kOrder == Order::objects ? problem.boxes.size : problem.n,
      FindByStack<kOrder, Counter>{problem.boxes, problem.nodes, problem.n, counter}, problem.out);
}

}  // namespace lbvh::variants
