// SPDX-License-Identifier: Zlib
/// @file
/// Defines a tree over boxes, for programs that need queries but no pairs. The tree answers single
/// queries with any predicate, and batches of boxes or rays. pair_finder.h finds pairs. C++17, host
/// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "export.h"
#include "host/block_query.h"
#include "ray_test.h"
#include "types.h"

namespace lbvh {

/// The hits of a batch: query i hits boxes[k] for offsets[i] <= k < offsets[i + 1]. The boxes of a
/// query are sorted by index, with any number of threads.
struct BatchHits {
  std::vector<std::size_t> offsets;  ///< one element for each query, and one more; the first is 0
  std::vector<std::uint32_t> boxes;  ///< the hits of all queries, one query after the other

  /// Returns the boxes that a query hits.
  /// @param query less than the number of queries; not checked
  View<const std::uint32_t> of(std::size_t query) const {
    return {boxes.data() + offsets[query], offsets[query + 1] - offsets[query]};
  }
};

/// A wide tree over boxes, for queries. A node has sixteen boxes or sixteen children, as in a step
/// on the host. The tree is built by several host threads. Many threads may query at the same time
/// while none builds. Only one batch may run at a time.
class GPULBVH_API BoxTree {
 public:
  /// @param threads number of host threads, as in Options::threads
  /// @throws std::invalid_argument if `threads` is negative
  explicit BoxTree(int threads = 0);
  ~BoxTree();
  /// A moved-from tree may only be assigned to or destroyed.
  BoxTree(BoxTree&&) noexcept;
  /// Destroys this tree's state, then takes over the other tree's.
  BoxTree& operator=(BoxTree&&) noexcept;

  /// Builds the tree over `boxes`. Queries read `boxes` again, so the array must outlive them.
  /// @throws std::length_error on more than 2^30 boxes, std::bad_alloc; after an exception there is
  ///   no tree
  void build(View<const Aabb> boxes);

  /// Calls visit(box index) for each box for which hits(const Aabb&) is true, in unspecified order.
  /// A NaN box is never visited. Many threads may call this function at the same time.
  /// @param hits if it is true for a box, it must also be true for all bounds that contain the box.
  ///   Pass a RayTest directly, because a function that calls one takes twice the time.
  template <class Hits, class Visit>
  void query(const Hits& hits, const Visit& visit) const {
    if (const PackedBoxes* all = packed()) queryExactly(*all, hits, visit);
  }

  /// Finds, for each query, all boxes for which overlap() is true. A query with a NaN hits nothing.
  /// An inverted query hits the boxes for which all six comparisons of overlap() hold.
  /// @param hits replaced; its memory is reused
  /// @throws std::bad_alloc
  void aabbTest(View<const Aabb> queries, BatchHits& hits);
  /// Finds, for each ray, all boxes that its RayTest accepts.
  /// @throws std::bad_alloc
  void rayTest(View<const Ray> rays, BatchHits& hits);

  /// Memory that the tree holds, in bytes.
  std::size_t memoryBytes() const;

 private:
  // The blocks of the last build(), valid until the next one. Null if there is no tree.
  friend const PackedBoxes* packedOf(const BoxTree& tree) { return tree.packed(); }
  const PackedBoxes* packed() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Deprecated names of version 0.2, to be removed in 0.4. They use binary trees (Tree in types.h).

GPULBVH_BEGIN_OLD_NAMES

/// Calls visit(box index) for each leaf for which hits(Node) is true, in the order of the leaves.
/// If `hits` is true for a box, it must also be true for all bounds that contain the box. Many
/// threads may call this function at the same time.
template <class Hits, class Visit>
[[deprecated("use BoxTree::query")]] void queryNodes(View<const Node> nodes, const Hits& hits,
                                                     const Visit& visit) {
  std::uint32_t at = nodes.empty() ? kNullIndex : 0;
  while (at != kNullIndex) {
    const Node& node = nodes[at];
    const bool hit = hits(node);
    if (hit && node.isLeaf()) visit(node.box());
    at = hit && !node.isLeaf() ? node.left : node.rope;
  }
}

/// Calls visit(box index) for each hit box among the boxes that `tree` was built from. The leaves
/// are visited first, as in queryNodes(). The oversized boxes follow, for which hits(Aabb) is
/// called. A NaN box is never visited.
/// @param boxes the boxes that the tree was built from
template <class Hits, class Visit>
[[deprecated("use BoxTree::query")]] void queryTree(const Tree& tree, View<const Aabb> boxes,
                                                    const Hits& hits, const Visit& visit) {
  queryNodes(tree.nodes, hits, visit);
  for (const std::uint32_t box : tree.oversizedBoxes)
    if (hits(boxes[box])) visit(box);
}

GPULBVH_END_OLD_NAMES

/// The nodes at depth `level` and the leaves above that depth, in the order of the leaves. Every
/// leaf is one of these nodes, or is below exactly one of them. Use the result to draw a tree, or
/// to divide a tree among tasks.
/// @param level the root has level 0; below the deepest level, all leaves are returned
/// @throws std::bad_alloc
[[deprecated("a BoxTree has no nodes to list")]] GPULBVH_API std::vector<Node> nodesAtLevel(
    const Tree& tree, int level);

/// Does what BoxTree::aabbTest does, but starts its own threads in each call. `boxes` must be the
/// boxes of the tree.
[[deprecated("use BoxTree::aabbTest")]] GPULBVH_API void aabbTestBatch(const Tree& tree,
                                                                       View<const Aabb> boxes,
                                                                       View<const Aabb> queries,
                                                                       BatchHits& hits,
                                                                       int threads = 0);
/// Does what BoxTree::rayTest does, but starts its own threads in each call. `boxes` must be the
/// boxes of the tree.
[[deprecated("use BoxTree::rayTest")]] GPULBVH_API void rayTestBatch(const Tree& tree,
                                                                     View<const Aabb> boxes,
                                                                     View<const Ray> rays,
                                                                     BatchHits& hits,
                                                                     int threads = 0);

}  // namespace lbvh
