// SPDX-License-Identifier: Zlib
// Checks a binary tree whose leaves are single boxes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "broadphase/types.h"

namespace lbvh::test {

inline bool sameBounds(const Node& node, const Node& a, const Node& b) {
  for (int axis = 0; axis < 3; ++axis) {
    if (node.min[axis] != std::min(a.min[axis], b.min[axis])) return false;
    if (node.max[axis] != std::max(a.max[axis], b.max[axis])) return false;
  }
  return true;
}

class TreeWalk {
 public:
  TreeWalk(View<const Node> nodes, View<const Aabb> boxes)
      : nodes_(nodes), boxes_(boxes), n_(static_cast<std::uint32_t>((nodes.size() + 1) / 2)) {}

  std::string run() {
    if (nodes_.empty()) return {};
    if (nodes_.size() % 2 == 0)
      return std::to_string(nodes_.size()) + " nodes, but a tree over n leaves has 2 n - 1";
    std::vector<Visit> stack{{0, kNullIndex, 0, n_ - 1}};
    while (!stack.empty()) {
      const Visit visit = stack.back();
      stack.pop_back();
      if (nodes_[at(visit.node)].rope != visit.rope) return wrong("rope", visit.node);
      if (nodes_[at(visit.node)].isLeaf()) {
        const std::string why = checkLeaf(visit);
        if (!why.empty()) return why;
        continue;
      }
      const std::uint32_t left = nodes_[at(visit.node)].left;
      const std::string why = checkInner(visit, left);
      if (!why.empty()) return why;
      const std::uint32_t right = nodes_[at(left)].rope, split = lastLeafOfLeftChild(left);
      stack.push_back({right, visit.rope, split + 1, visit.last});
      stack.push_back({left, right, visit.first, split});
    }
    return nextLeaf_ == n_ ? std::string{} : "leaves are missing";
  }

 private:
  struct Visit {
    std::uint32_t node, rope, first, last;  // the rope and the leaves that this node must have
  };

  static std::size_t at(std::uint32_t node) { return static_cast<std::size_t>(node); }
  static std::string wrong(const char* what, std::uint32_t node) {
    std::string out = "wrong ";
    return out.append(what).append(" at node ").append(std::to_string(node));
  }
  bool inRange(std::uint32_t node) const { return at(node) < nodes_.size(); }

  /// A left child that is an inner node has the number of its last leaf as its index.
  std::uint32_t lastLeafOfLeftChild(std::uint32_t left) const {
    return left >= n_ - 1 ? left - (n_ - 1) : left;
  }

  std::string checkLeaf(const Visit& visit) {
    const Node& leaf = nodes_[at(visit.node)];
    if (visit.first != visit.last || visit.node != n_ - 1 + visit.first)
      return wrong("position", visit.node);
    if (visit.first != nextLeaf_++) return wrong("order", visit.node);
    if (leaf.box() >= boxes_.size()) return wrong("box", visit.node);
    const Aabb& box = boxes_[leaf.box()];
    for (int axis = 0; axis < 3; ++axis)
      if (leaf.min[axis] != box.min[axis] || leaf.max[axis] != box.max[axis])
        return wrong("bounds", visit.node);
    return {};
  }

  std::string checkInner(const Visit& visit, std::uint32_t left) const {
    if (++visited_ > nodes_.size()) return "the tree has a cycle";
    if (visit.first >= visit.last) return wrong("range", visit.node);
    if (!inRange(left)) return wrong("left child", visit.node);
    const std::uint32_t split = lastLeafOfLeftChild(left), right = nodes_[at(left)].rope;
    if (split < visit.first || split >= visit.last) return wrong("split", visit.node);
    const std::uint32_t expected = split + 1 == visit.last ? n_ - 1 + visit.last : split + 1;
    if (right != expected) return wrong("right child", visit.node);
    if (!sameBounds(nodes_[at(visit.node)], nodes_[at(left)], nodes_[at(right)]))
      return wrong("bounds", visit.node);
    return {};
  }

  View<const Node> nodes_;
  View<const Aabb> boxes_;
  std::uint32_t n_;
  std::uint32_t nextLeaf_ = 0;
  mutable std::size_t visited_ = 0;
};

/// Returns an empty string, or what is wrong. Checks that a traversal reaches every leaf once, and
/// that bounds are tight. Ropes must lead to the node where a traversal with a stack continues.
/// Nodes must be numbered by THE INDEX RULE (types.h).
inline std::string whyTreeIsWrong(View<const Node> nodes, View<const Aabb> boxes) {
  return TreeWalk(nodes, boxes).run();
}

}  // namespace lbvh::test
