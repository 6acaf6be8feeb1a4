// SPDX-License-Identifier: Zlib
// Stage 4: the tree over the sorted codes in one bottom-up pass: topology, bounds and ropes.
// Apetrei 2014 as revised by Prokopenko and Lebrun-Grandie ("Revising Apetrei's bounding volume
// hierarchy construction algorithm to allow stackless traversal"), Algorithm 4: Karras's numbering
// restored, skip links set on the way. The index rule is in types.h.
#pragma once

#include <cstdint>

#include "broadphase/core/atomics.h"
#include "broadphase/core/morton.h"
#include "broadphase/types.h"

namespace lbvh {

/// How much neighbours in the sorted order differ: the more, the higher the split between them. It
/// is the exclusive or of their codes. Equal codes are told apart by their positions (Karras 2012,
/// section 4), which differ less than any codes. Beyond the ends it is the greatest value.
template <class Key>
struct Difference {
  const Key* codes;
  std::uint32_t n;

  /// Between leaves i and i + 1; no two adjacent values are equal.
  LBVH_HD std::int64_t operator()(std::uint32_t i) const {
    if (i >= n - 1) return INT64_MAX;  // -1 wraps around
    const auto codeBits = static_cast<std::int64_t>(codes[i] ^ codes[i + 1]);
    // One less, so that opposite corners of the grid (all 63 bits differ) stay below the ends.
    return codeBits != 0 ? codeBits - 1 : INT64_MIN + (i ^ (i + 1));
  }
};

/// THE INDEX RULE (types.h) over n leaves.
struct Numbering {
  std::uint32_t n;

  LBVH_HD std::uint32_t leaf(std::uint32_t k) const { return n - 1 + k; }
  /// Left child over [first, split], right child over [split + 1, last].
  LBVH_HD std::uint32_t leftChild(std::uint32_t first, std::uint32_t split) const {
    return first == split ? leaf(split) : split;
  }
  LBVH_HD std::uint32_t rightChild(std::uint32_t split, std::uint32_t last) const {
    return split + 1 == last ? leaf(last) : split + 1;
  }
};

/// The bounds of `out` become those around left and right.
LBVH_HD inline void unite(Node& out, const Node& left, const Node& right) {
  for (int axis = 0; axis < 3; ++axis) {
    out.min[axis] = right.min[axis] < left.min[axis] ? right.min[axis] : left.min[axis];
    out.max[axis] = right.max[axis] > left.max[axis] ? right.max[axis] : left.max[axis];
  }
}

LBVH_HD inline Node leafOver(View<const Aabb> boxes, std::uint32_t id, std::uint32_t rope) {
  const Aabb box = boxes[id];
  return Node{
      {box.min[0], box.min[1], box.min[2]}, ~id, {box.max[0], box.max[1], box.max[2]}, rope};
}

/// A thread on its way up: the node that it has come to, over the leaves [first, last].
template <class Key>
struct Climb {
  Difference<Key> difference;
  Numbering tree;
  Node* nodes;
  std::uint32_t first, last;
  std::int64_t before, after;  ///< differences at the two ends
  Node node;

  LBVH_HD bool isAtRoot() const { return first == 0 && last == tree.n - 1; }
  LBVH_HD bool isLeftChild() const { return after < before; }
  /// The parent splits behind this leaf. One end of its range is known, the sibling brings the
  /// other.
  LBVH_HD std::uint32_t split() const { return isLeftChild() ? last : first - 1; }
  LBVH_HD std::uint32_t knownEnd() const { return isLeftChild() ? first : last; }
  LBVH_HD std::uint32_t sibling(std::uint32_t otherEnd) const {
    return isLeftChild() ? tree.rightChild(last, otherEnd) : tree.leftChild(otherEnd, first - 1);
  }

  /// Goes on to the parent, and writes it.
  LBVH_HD void join(const Node& sibling, std::uint32_t otherEnd) {
    const std::uint32_t at = split();
    if (isLeftChild()) {
      unite(node, node, sibling);
      last = otherEnd;
      after = difference(last);
    } else {
      unite(node, sibling, node);
      first = otherEnd;
      before = difference(first - 1);
    }
    node.left = tree.leftChild(first, at);
    node.rope = rope();
    nodes[isLeftChild() ? last : first] = node;
  }

  /// Algorithm 2: the right child behind `last` is a leaf if that leaf joins the left side before
  /// anything behind it.
  LBVH_HD std::uint32_t rope() const {
    if (last == tree.n - 1) return kNullIndex;
    return after < difference(last + 1) ? tree.leaf(last + 1) : last + 1;
  }
};

/// Element i starts at leaf i and climbs. At each node the first thread to arrive writes its end of
/// the range to `arrivals` and stops; the second goes on. Before, `arrivals` must be all
/// kNullIndex.
template <class Key>
struct BuildHierarchy {
  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< of the leaves, in sorted order
  const Key* codes;          ///< likewise
  const SceneBounds* scene;  ///< how many leaves there are
  std::uint32_t* arrivals;   ///< by split
  Node* nodes;               ///< 2 n - 1

  LBVH_HD void operator()(std::uint32_t leaf) const {
    if (leaf >= scene->ordinary) return;
    Climb<Key> climb = start(leaf, scene->ordinary);
    while (!climb.isAtRoot()) {
      const std::uint32_t other = exchangeAndPublish(&arrivals[climb.split()], climb.knownEnd());
      if (other == kNullIndex) return;
      climb.join(nodes[climb.sibling(other)], other);
    }
  }

  LBVH_HD Climb<Key> start(std::uint32_t leaf, std::uint32_t n) const {
    const Difference<Key> difference{codes, n};
    Climb<Key> climb{difference,       {n}, nodes, leaf, leaf, difference(leaf - 1),
                     difference(leaf), {}};
    climb.node = leafOver(boxes, ids[leaf], climb.rope());
    nodes[climb.tree.leaf(leaf)] = climb.node;
    return climb;
  }
};

}  // namespace lbvh
