// Queries of a Tree: visit every box that a predicate on bounds accepts. C++17, host only.
// The predicate decides what a query is (box, ray, sweep); callers test exactly what is visited.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Calls visit(box index) for each leaf and side box for which hits(Node) or hits(Aabb) is true.
/// `hits` must be true for bounds that contain a box it is true for. Nodes are visited without a
/// stack (Prokopenko and Lebrun-Grandie, Algorithm 1); the order is that of the tree's leaves, then
/// the side boxes. Safe on many threads at once.
template <class Hits, class Visit>
void queryTree(const Tree& tree, View<const Aabb> boxes, const Hits& hits, const Visit& visit) {
  std::int32_t at = tree.nodes.empty() ? kSentinel : 0;
  while (at != kSentinel) {
    const Node& node = tree.nodes[static_cast<std::size_t>(at)];
    const bool hit = hits(node);
    if (hit && node.isLeaf()) visit(node.box());
    at = hit && !node.isLeaf() ? node.left : node.rope;
  }
  for (const std::uint32_t box : tree.sideBoxes)
    if (hits(boxes[box])) visit(box);
}

}  // namespace lbvh
