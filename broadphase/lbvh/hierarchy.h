// SPDX-License-Identifier: Zlib
// Builds the tree over the sorted codes in one bottom-up pass: topology, bounds and ropes. This is
// stage 4. It uses Apetrei's algorithm (2014) as revised by Prokopenko and Lebrun-Grandie:
// Algorithm 4 of "Revising Apetrei's bounding volume hierarchy construction algorithm to allow
// stackless traversal". The revision restores Karras's numbering, and sets skip links in the same
// pass. The index rule is in types.h.
#pragma once

#include <cstdint>

#include "broadphase/core/atomics.h"
#include "broadphase/core/morton.h"
#include "broadphase/types.h"

namespace lbvh {

/// The difference of neighbours in the sorted order: the exclusive or of their codes. The larger it
/// is, the closer to the root is the split between them. If the codes are equal, the difference is
/// computed from their positions in the order (Karras 2012, section 4). It is then less than any
/// difference of unequal codes. At both ends of the order the difference is the maximum.
template <class Key>
struct Difference {
  const Key* codes;
  std::uint32_t n;

  /// The difference of leaves i and i + 1. Adjacent differences are never equal.
  GPULBVH_HD std::int64_t operator()(std::uint32_t i) const {
    if (i >= n - 1) return INT64_MAX;  // an i of -1 wraps around
    const Key differing = codes[i] ^ codes[i + 1];
    if (differing == 0) return INT64_MIN + (i ^ (i + 1));
    // The difference is halved, because an unsigned difference of 64 bits would not fit. Nonzero
    // differences that are compared have different highest bits, so their halves differ, too. 1 is
    // subtracted, so that a difference in all bits stays below the value at the ends.
    return static_cast<std::int64_t>(std::uint64_t{differing} >> 1) - 1;
  }
};

/// THE INDEX RULE (types.h) for a tree over n leaves.
struct Numbering {
  std::uint32_t n;

  GPULBVH_HD std::uint32_t leaf(std::uint32_t k) const { return n - 1 + k; }
  /// The left child has the leaves [first, split], the right child [split + 1, last].
  GPULBVH_HD std::uint32_t leftChild(std::uint32_t first, std::uint32_t split) const {
    return first == split ? leaf(split) : split;
  }
  GPULBVH_HD std::uint32_t rightChild(std::uint32_t split, std::uint32_t last) const {
    return split + 1 == last ? leaf(last) : split + 1;
  }
};

/// Sets the bounds of `out` to the union of the bounds of `left` and `right`.
GPULBVH_HD inline void unite(Node& out, const Node& left, const Node& right) {
  for (int axis = 0; axis < 3; ++axis) {
    out.min[axis] = right.min[axis] < left.min[axis] ? right.min[axis] : left.min[axis];
    out.max[axis] = right.max[axis] > left.max[axis] ? right.max[axis] : left.max[axis];
  }
}

GPULBVH_HD inline Node leafOver(View<const Aabb> boxes, std::uint32_t id, std::uint32_t rope) {
  const Aabb box = boxes[id];
  return Node{
      {box.min[0], box.min[1], box.min[2]}, ~id, {box.max[0], box.max[1], box.max[2]}, rope};
}

/// The climb of a thread towards the root. The thread is at a node over the leaves [first, last].
template <class Key>
struct Climb {
  Difference<Key> difference;
  Numbering tree;
  Node* nodes;
  std::uint32_t first, last;
  std::int64_t before, after;  ///< differences before `first` and after `last`
  Node node;

  GPULBVH_HD bool isAtRoot() const { return first == 0 && last == tree.n - 1; }
  GPULBVH_HD bool isLeftChild() const { return after < before; }
  /// The leaf after which the parent splits its range. This thread knows one end of that range. The
  /// thread of the sibling knows the other end.
  GPULBVH_HD std::uint32_t split() const { return isLeftChild() ? last : first - 1; }
  GPULBVH_HD std::uint32_t knownEnd() const { return isLeftChild() ? first : last; }
  GPULBVH_HD std::uint32_t sibling(std::uint32_t otherEnd) const {
    return isLeftChild() ? tree.rightChild(last, otherEnd) : tree.leftChild(otherEnd, first - 1);
  }

  /// Moves to the parent, and writes it.
  GPULBVH_HD void join(const Node& sibling, std::uint32_t otherEnd) {
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

  /// Algorithm 2 of Prokopenko and Lebrun-Grandie. The rope is leaf last + 1 itself if that leaf
  /// differs less from the leaf before it than from the leaf after it.
  GPULBVH_HD std::uint32_t rope() const {
    if (last == tree.n - 1) return kNullIndex;
    return after < difference(last + 1) ? tree.leaf(last + 1) : last + 1;
  }
};

/// Thread i starts at leaf i and climbs. At each node the first thread to arrive writes its end of
/// the range to `arrivals` and stops; the second continues. The caller must set every element of
/// `arrivals` to kNullIndex.
template <class Key>
struct BuildHierarchy {
  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< boxes of the leaves, in sorted order
  const Key* codes;          ///< codes of the leaves, in sorted order
  std::uint32_t n;           ///< number of leaves
  std::uint32_t* arrivals;   ///< one for each split
  Node* nodes;               ///< receives 2 n - 1 nodes

  GPULBVH_HD void operator()(std::uint32_t leaf) const {
    Climb<Key> climb = start(leaf);
    while (!climb.isAtRoot()) {
      const std::uint32_t other = exchangeAndPublish(&arrivals[climb.split()], climb.knownEnd());
      if (other == kNullIndex) return;
      climb.join(nodes[climb.sibling(other)], other);
    }
  }

  GPULBVH_HD Climb<Key> start(std::uint32_t leaf) const {
    const Difference<Key> difference{codes, n};
    Climb<Key> climb{difference,       {n}, nodes, leaf, leaf, difference(leaf - 1),
                     difference(leaf), {}};
    climb.node = leafOver(boxes, ids[leaf], climb.rope());
    nodes[climb.tree.leaf(leaf)] = climb.node;
    return climb;
  }
};

}  // namespace lbvh
