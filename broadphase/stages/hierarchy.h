// Stage 4: the tree over the sorted codes in one bottom-up pass: topology, bounds and ropes.
// Apetrei 2014 as revised by Prokopenko and Lebrun-Grandie ("Revising Apetrei's bounding volume
// hierarchy construction algorithm to allow stackless traversal"), Algorithm 4: Karras's numbering
// restored, skip links set on the way. The index rule is in types.h.
#pragma once

#include <cstdint>

#include "broadphase/stages/atomics.h"
#include "broadphase/stages/morton.h"
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
    if (leaf < scene->ordinary) climb(leaf, scene->ordinary);
  }

  LBVH_HD void climb(std::uint32_t leaf, std::uint32_t n) const {
    const Difference<Key> difference{codes, n};
    const Numbering tree{n};
    // Algorithm 2: the right child behind `last` is a leaf if that leaf joins the left side before
    // anything behind it.
    const auto rope = [&](std::uint32_t last, std::int64_t after) {
      if (last == n - 1) return kNullIndex;
      return after < difference(last + 1) ? tree.leaf(last + 1) : last + 1;
    };
    std::uint32_t first = leaf, last = leaf;
    std::int64_t before = difference(first - 1), after = difference(last);
    Node node = leafOver(boxes, ids[leaf], rope(last, after));
    nodes[tree.leaf(leaf)] = node;
    while (first != 0 || last != n - 1) {
      const bool isLeftChild = after < before;
      const std::uint32_t split = isLeftChild ? last : first - 1;
      const std::uint32_t other = exchangeAndPublish(&arrivals[split], isLeftChild ? first : last);
      if (other == kNullIndex) return;
      if (isLeftChild) {
        unite(node, node, nodes[tree.rightChild(split, other)]);
        last = other;
        after = difference(last);
      } else {
        unite(node, nodes[tree.leftChild(other, split)], node);
        first = other;
        before = difference(first - 1);
      }
      node.left = tree.leftChild(first, split);
      node.rope = rope(last, after);
      nodes[after < before ? last : first] = node;
    }
  }
};

}  // namespace lbvh
