// SPDX-License-Identifier: Zlib
// Stage 5: overlapping pairs from the tree, each once, in no particular order.
// Emits into whatever sink the space offers; sorting is stage 6.
#pragma once

#include <cstdint>

#include "broadphase/stages/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// What a query finds at a node, and which node is next.
struct Visit {
  bool isHit;  ///< a leaf that it overlaps
  std::uint32_t next;
};

/// The one step of a traversal. The node is a copy and no word of it is behind a branch: so it is
/// read as a whole, in two loads that do not wait for each other.
LBVH_HD inline Visit visit(const Node& query, Node node) {
  const bool isMet = overlap(query, node), isLeaf = node.isLeaf();
  return {isMet && isLeaf, isMet && !isLeaf ? node.left : node.rope};
}

/// Finds half-pairs in order, without a stack (Prokopenko and Lebrun-Grandie, Algorithm 1, started
/// at the query leaf's own rope). Element i is leaf i. It visits only what lies to its right, so
/// each pair is found once.
struct FindTreePairs {
  const Node* nodes;
  const SceneBounds* scene;    ///< how many leaves there are
  View<const Filter> filters;  ///< by box, or empty: all pairs may collide

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t leaf, Sink& sink) const {
    const std::uint32_t n = scene->ordinary;
    if (leaf >= n) return;
    const Node query = nodes[n - 1 + leaf];
    const std::uint32_t box = query.box();
    std::uint32_t at = query.rope;
    while (at != kNullIndex) {
      const Node node = nodes[at];
      const Visit found = visit(query, node);
      at = found.next;
      if (!found.isHit || !shouldCollide(filters, box, node.box())) continue;
      if (!sink.push(makePair(box, node.box()))) at = kNullIndex;
    }
  }
};

/// Tests the oversized boxes against all others. Element k is box ids[k], of those in the tree and
/// then the oversized ones. It is tested against the oversized boxes behind it.
struct FindOversizedPairs {
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  const SceneBounds* scene;
  View<const Filter> filters;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t k, Sink& sink) const {
    const std::uint32_t n = scene->ordinary, end = n + scene->oversized;
    if (k >= end) return;
    const std::uint32_t box = ids[k];
    for (std::uint32_t i = k < n ? n : k + 1; i < end; ++i) {
      const std::uint32_t other = ids[i];
      if (!overlap(boxes[box], boxes[other])) continue;
      if (!shouldCollide(filters, box, other)) continue;
      if (!sink.push(makePair(box, other))) return;
    }
  }
};

/// Two appending bodies as one.
template <class A, class B>
struct OneAfterTheOther {
  A a;
  B b;

  template <class Sink>
  LBVH_HD void operator()(std::uint32_t i, Sink& sink) const {
    a(i, sink);
    b(i, sink);
  }
};

}  // namespace lbvh
