// SPDX-License-Identifier: Zlib
// Queries search packed blocks of boxes. This class keeps the proxies that have changed since the
// blocks were packed. The newest of them are in a list, and a query tests these one by one. The
// others are in a tree, which the query searches. So the cost of a query depends on what it finds,
// and the cost of a move depends on the depth of the tree. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvt.h>

#include <cstddef>
#include <vector>

#include "proxies.h"

class GpuLbvhChangedProxies {
 public:
  /// Adds a proxy that is new, has a new box, or is about to be destroyed.
  /// @throws std::bad_alloc
  void add(GpuLbvhProxy* proxy);
  /// Moves the proxies of the list to the tree. No query of this thread may be running.
  /// @throws std::bad_alloc, with the list unchanged
  void place();
  void clear();

  std::size_t size() const { return m_all.size(); }
  std::size_t waiting() const { return m_waiting.size(); }  ///< number of proxies in the list

  /// Calls visit(proxy) for each of the first `waiting` proxies of the list, and for each proxy in
  /// the tree whose enlarged box hits(GpuLbvhBox) accepts. `visit` may call add().
  template <class Hits, class Visit>
  void query(const Hits& hits, std::size_t waiting, const Visit& visit) const {
    const auto visitPlaced = [&](const btDbvtNode& leaf) {
      auto* const proxy = static_cast<GpuLbvhProxy*>(leaf.data);
      if (!proxy->m_isWaiting) visit(proxy);
    };
    if (m_tree.m_root != nullptr) queryTree(*m_tree.m_root, hits, visitPlaced);
    for (std::size_t i = 0; i < waiting; ++i) visit(m_waiting[i]);
  }

 private:
  /// Traverses the tree without a stack. After a subtree, goes up to the nearest ancestor whose
  /// right child has not been visited, and continues with that child.
  template <class Hits, class Visit>
  static void queryTree(const btDbvtNode& root, const Hits& hits, const Visit& visit) {
    const btDbvtNode* node = &root;
    for (;;) {
      const bool isHit = hits(GpuLbvhBox(node->volume.Mins(), node->volume.Maxs()));
      if (isHit && node->isinternal()) {
        node = node->childs[0];
        continue;
      }
      if (isHit) visit(*node);
      while (node != &root && node == node->parent->childs[1]) node = node->parent;
      if (node == &root) return;
      node = node->parent->childs[1];
    }
  }

  std::vector<GpuLbvhProxy*> m_all;      ///< proxies with m_isChanged
  std::vector<GpuLbvhProxy*> m_waiting;  ///< the list: proxies with m_isWaiting
  std::vector<btDbvtNode*> m_leaves;     ///< by slot; null: not in the tree
  btDbvt m_tree;                         ///< enlarged boxes, so that small moves change nothing
};
