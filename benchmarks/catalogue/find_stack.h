// SPDX-License-Identifier: Zlib
// Runs one query per box with a stack ("Thinking Parallel, Part II"). The first variant is
// recursive. The other three have an explicit stack. The queries of one run in object order, and
// those of two in leaf order. The last of these two skips all leaves up to the query's own. Teaches
// what divergence costs, and that half of the tests are enough to find all pairs.
#pragma once

#include "benchmarks/catalogue/variant.h"
#include "broadphase/core/morton.h"

namespace lbvh::variants {

/// The last leaf below a node. The node's rope leads to the node after this leaf.
struct LastLeaf {
  const Node* nodes;
  std::uint32_t n;

  GPULBVH_HD std::uint32_t operator()(std::uint32_t node) const {
    if (node >= n - 1) return node - (n - 1);
    const std::uint32_t rope = nodes[node].rope;
    if (rope == kNullIndex) return n - 1;
    return (rope >= n - 1 ? rope - (n - 1) : rope) - 1;
  }
};

/// The query of all four variants. An inverted box can fail to overlap itself and the bounds of the
/// nodes above it, so a query need not reach its own leaf. A query that visits leaves on both sides
/// of its own keeps only the pairs in which its box has the smaller index.
template <class Sink>
struct Query {
  Aabb box;
  std::uint32_t id;
  Sink& sink;

  GPULBVH_HD bool hits(const Node& node) const { return overlap(box, node); }
  GPULBVH_HD void keepIfFirst(std::uint32_t other) const {
    if (id < other) sink.push({id, other});
  }
};

GPULBVH_HD inline Aabb boxOf(const Node& node) {
  return {{node.min[0], node.min[1], node.min[2]}, {node.max[0], node.max[1], node.max[2]}};
}

template <class Counter>
struct FindRecursively {
  View<const Aabb> boxes;
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t object, Sink& sink) const {
    const Aabb box = boxes[object];
    if (classify(box) == BoxClass::ordinary) visit(0, Query<Sink>{box, object, sink});
  }

  template <class Sink>
  GPULBVH_HD void visit(std::uint32_t at, const Query<Sink>& query) const {
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

/// The loop of the three variants with an explicit stack. Each round visits one inner node.
template <Order kOrder, class Counter>
struct FindByStack {
  // One subtree per level may be postponed. The number of levels is at most the number of bits of a
  // key plus the number of bits of a position.
  static constexpr int kMaxLevels = 30 + 31;

  View<const Aabb> boxes;
  const Node* nodes;
  std::uint32_t n;
  Counter counter;

  template <class Sink>
  GPULBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    if constexpr (kOrder == Order::objects) {
      const Aabb box = boxes[i];
      if (classify(box) == BoxClass::ordinary) visit(Query<Sink>{box, i, sink}, kNullIndex);
    } else {
      const Node& leaf = nodes[n - 1 + i];
      visit(Query<Sink>{boxOf(leaf), leaf.box(), sink}, i);
    }
  }

  template <class Sink>
  GPULBVH_HD void visit(const Query<Sink>& query, std::uint32_t queryLeaf) const {
    std::uint32_t stack[kMaxLevels];
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

  /// Tests a node. If it is a leaf that overlaps, pushes the pair.
  /// @return whether the traversal must visit the node's children
  template <class Sink>
  GPULBVH_HD bool look(const Query<Sink>& query, std::uint32_t queryLeaf, std::uint32_t at) const {
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
  problem.space.append(problem.boxes.size(),
                       FindRecursively<Counter>{problem.boxes, problem.nodes, problem.n, counter},
                       problem.out);
}

template <Order kOrder, class Space, class Counter>
void appendByStack(const FindProblem<Space>& problem, Counter counter) {
  problem.space.append(
      kOrder == Order::objects ? problem.boxes.size() : problem.n,
      FindByStack<kOrder, Counter>{problem.boxes, problem.nodes, problem.n, counter}, problem.out);
}

}  // namespace lbvh::variants
