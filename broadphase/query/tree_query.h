// Queries of a Tree: one at a time with any predicate, many boxes or rays in one call on the
// host's threads, and its nodes level by level. Does not build trees (pair_finder.h). C++17, host
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

/// Calls visit(box index) for each leaf and oversized box for which hits(Node) or hits(Aabb) is
/// true. `hits` must be true for bounds that contain a box it is true for. Nodes are visited
/// without a stack (Prokopenko and Lebrun-Grandie, Algorithm 1); the order is that of the tree's
/// leaves, then the oversized boxes. Safe on many threads at once.
template <class Hits, class Visit>
void queryTree(const Tree& tree, View<const Aabb> boxes, const Hits& hits, const Visit& visit) {
  std::uint32_t at = tree.nodes.empty() ? kNullIndex : 0;
  while (at != kNullIndex) {
    const Node& node = tree.nodes[static_cast<std::size_t>(at)];
    const bool hit = hits(node);
    if (hit && node.isLeaf()) visit(node.box());
    at = hit && !node.isLeaf() ? node.left : node.rope;
  }
  for (const std::uint32_t box : tree.oversizedBoxes)
    if (hits(boxes[box])) visit(box);
}

/// The nodes at depth `level` (the root's is 0) and the leaves above it, in the order of the
/// leaves: every leaf is below exactly one of them. Behind the deepest level: all leaves. For
/// pictures, and to divide a tree among tasks.
std::vector<Node> nodesAtLevel(const Tree& tree, int level);

/// The points origin + t * direction for 0 <= t <= length. The direction need not be of length 1;
/// a component that is 0, or so small that its reciprocal is infinite, counts as 0.
struct Ray {
  float origin[3];
  float direction[3];
  float length;  ///< in units of the direction; may be infinite
};

/// Whether a ray meets a closed box, touching included. A NaN anywhere, a negative length, and an
/// inverted box are misses.
class RayTest {
 public:
  explicit RayTest(const Ray& ray);

  template <class Box>  ///< an Aabb or a Node
  bool operator()(const Box& box) const;

 private:
  float origin_[3], inverse_[3], length_;
  bool isParallel_[3];
};

/// What a batch found: query i hits boxes[k] for offsets[i] <= k < offsets[i + 1], in ascending
/// order of the boxes' indices. The same whatever the tree's builder and the number of threads.
struct BatchHits {
  std::vector<std::size_t> offsets;  ///< one more than there are queries, beginning with 0
  std::vector<std::uint32_t> boxes;

  View<const std::uint32_t> of(std::size_t query) const {
    return {boxes.data() + offsets[query], offsets[query + 1] - offsets[query]};
  }
};

/// All boxes that overlap() each of the queries. `boxes` are those that `tree` was built from;
/// what `hits` held is replaced, and its memory used again.
/// @param threads of the host; 0 = all cores
/// @throws std::invalid_argument if `threads` is negative
/// @throws std::bad_alloc
void aabbTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Aabb> queries,
                   BatchHits& hits, int threads = 0);

/// The same for rays: all boxes that each RayTest accepts.
void rayTestBatch(const Tree& tree, View<const Aabb> boxes, View<const Ray> rays, BatchHits& hits,
                  int threads = 0);

template <class Box>
bool RayTest::operator()(const Box& box) const {
  float enter = 0, leave = length_;
  for (int axis = 0; axis < 3; ++axis) {
    const float lo = box.min[axis] - origin_[axis], hi = box.max[axis] - origin_[axis];
    if (isParallel_[axis]) {
      if (!(lo <= 0 && hi >= 0)) return false;
      continue;
    }
    const bool isForward = inverse_[axis] > 0;
    const float near = (isForward ? lo : hi) * inverse_[axis];
    const float far = (isForward ? hi : lo) * inverse_[axis];
    // Written so that a NaN is a miss.
    if (!(near <= leave && far >= enter)) return false;
    if (near > enter) enter = near;
    if (far < leave) leave = far;
  }
  return enter <= leave;
}

}  // namespace lbvh
