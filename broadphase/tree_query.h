// SPDX-License-Identifier: Zlib
/// @file
/// Queries of a Tree: one at a time with any predicate, many boxes or rays in one call on the
/// host's threads, and its nodes level by level. Does not build trees (pair_finder.h).
/// C++17, host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "export.h"
#include "ray_test.h"
#include "types.h"

namespace lbvh {

/// Calls visit(box index) for each leaf for which hits(Node) is true. `hits` must be true for
/// bounds that contain a box it is true for. Needs no stack (Prokopenko and Lebrun-Grandie,
/// Algorithm 1). The order is that of the leaves. Safe on many threads at once.
template <class Hits, class Visit>
void queryNodes(View<const Node> nodes, const Hits& hits, const Visit& visit) {
  std::uint32_t at = nodes.empty() ? kNullIndex : 0;
  while (at != kNullIndex) {
    const Node& node = nodes[at];
    const bool hit = hits(node);
    if (hit && node.isLeaf()) visit(node.box());
    at = hit && !node.isLeaf() ? node.left : node.rope;
  }
}

/// The same for all boxes that `tree` was built from: first its leaves, then the boxes that are
/// kept out of it, for which hits(Aabb) is asked. A NaN box is never visited.
/// @param boxes those that the tree was built from
template <class Hits, class Visit>
void queryTree(const Tree& tree, View<const Aabb> boxes, const Hits& hits, const Visit& visit) {
  queryNodes(tree.nodes, hits, visit);
  for (const std::uint32_t box : tree.oversizedBoxes)
    if (hits(boxes[box])) visit(box);
}

/// The nodes at depth `level` and the leaves above that depth, in the order of the leaves: every
/// leaf is below exactly one of them. For pictures, and to divide a tree among tasks.
/// @param level the root's is 0; below the deepest level, all leaves are returned
/// @throws std::bad_alloc
GPULBVH_API std::vector<Node> nodesAtLevel(const Tree& tree, int level);

/// What a batch found: query i hits boxes[k] for offsets[i] <= k < offsets[i + 1]. The boxes of a
/// query are in ascending order of their indices, whatever the tree's builder and the number of
/// threads.
struct BatchHits {
  std::vector<std::size_t> offsets;  ///< one more than there are queries, beginning with 0
  std::vector<std::uint32_t> boxes;  ///< of all queries, one after the other

  /// The boxes that a query hits.
  /// @param query less than there are queries; not checked
  View<const std::uint32_t> of(std::size_t query) const {
    return {boxes.data() + offsets[query], offsets[query + 1] - offsets[query]};
  }
};

/// Finds all boxes that overlap() each of the queries. A query with a NaN hits nothing; an inverted
/// one hits what satisfies all six comparisons.
/// @param boxes those that the tree was built from
/// @param hits replaced; its memory is used again
/// @param threads of the host; 0 = all cores
/// @throws std::invalid_argument if `threads` is negative
/// @throws std::bad_alloc
GPULBVH_API void aabbTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Aabb> queries,
                               BatchHits& hits, int threads = 0);

/// The same for rays: finds all boxes that the RayTest of each accepts.
GPULBVH_API void rayTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Ray> rays,
                              BatchHits& hits, int threads = 0);

}  // namespace lbvh
