// Ray and box queries of the broad phase: what the finder's last step left in order, or a tree,
// plus the proxies that changed since, tested one by one. Sees every change at once; safe on many
// threads between changes. Not installed.
#pragma once

#include <LinearMath/btVector3.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "broadphase/exec/host_query.h"
#include "broadphase/pair_finder.h"
#include "broadphase/tree_query.h"
#include "proxies.h"

/// A ray or a swept box, as btBroadphaseRayCallback describes it, against boxes.
class GpuLbvhRay {
 public:
  GpuLbvhRay(const btVector3& from, const struct btBroadphaseRayCallback& callback,
             const btVector3& sweptMin, const btVector3& sweptMax);

  /// Closed, so a superset of Bullet's own strict test.
  template <class Box>
  bool operator()(const Box& box) const;

 private:
  btVector3 m_from, m_inverse, m_sweptMin, m_sweptMax;
  btScalar m_length;
  bool m_isParallel[3];
};

class GpuLbvhQueries {
 public:
  GpuLbvhQueries(GpuLbvhProxies& proxies, lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// The proxy's box is no longer what it was.
  void changed(GpuLbvhProxy* proxy);

  /// The finder's step ran over the boxes as they are now.
  void stepIsDone();

  /// Whether a query would neither build a tree nor test all boxes.
  bool areQuick() const { return !m_treeIsStale.load(std::memory_order_relaxed) && !m_treeIsLost; }

  /// The next query builds a tree first.
  void treeIsStale() { m_treeIsStale.store(true, std::memory_order_relaxed); }

  /// visit(proxy) for each living proxy whose exact box (GpuLbvhBox) `hits` accepts.
  template <class Hits, class Visit>
  void query(const Hits& hits, const Visit& visit) {
    refreshTree();
    const lbvh::View<const lbvh::Aabb> boxes = m_proxies.boxes();
    const auto visitLiving = [&](GpuLbvhProxy* proxy) {
      if (proxy->m_isAlive && hits(GpuLbvhBox(proxy))) visit(proxy);
    };
    if (m_treeIsLost) {
      for (std::uint32_t slot = 0; slot < boxes.size; ++slot)
        if (hits(boxes[slot])) visitLiving(m_proxies.at(slot));
      return;
    }
    const auto visitUnchanged = [&](std::uint32_t slot) {
      GpuLbvhProxy* proxy = m_proxies.at(slot);
      if (!proxy->m_isChanged) visitLiving(proxy);
    };
    if (m_step.resting == nullptr) lbvh::queryTree(m_finder.tree(), boxes, hits, visitUnchanged);
    for (const lbvh::PackedBoxes* part : {m_step.resting, m_step.moving})
      if (part != nullptr) lbvh::queryPacked(*part, boxes, hits, visitUnchanged);
    for (GpuLbvhProxy* proxy : m_changed) visitLiving(proxy);
  }

 private:
  bool remember(GpuLbvhProxy* proxy);
  void forgetChanged();
  void refreshTree();

  GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  lbvh::PackedScene m_step;              // without it the finder's tree is asked
  std::vector<GpuLbvhProxy*> m_changed;  // a small share of all: beyond that a tree is built
  std::atomic<bool> m_treeIsStale{false};
  bool m_treeIsLost = false;  // no memory for one
  std::mutex m_rebuild;
};

// Written so that a NaN anywhere, and a box that is inverted, is a miss.
template <class Box>
bool GpuLbvhRay::operator()(const Box& box) const {
  btScalar enter = 0, leave = m_length;
  for (int axis = 0; axis < 3; ++axis) {
    const btScalar lo = btScalar(box.min[axis]) - m_sweptMax[axis] - m_from[axis];
    const btScalar hi = btScalar(box.max[axis]) - m_sweptMin[axis] - m_from[axis];
    if (m_isParallel[axis]) {
      if (!(lo <= 0 && hi >= 0)) return false;
      continue;
    }
    const bool isForward = m_inverse[axis] > 0;
    const btScalar near = (isForward ? lo : hi) * m_inverse[axis];
    const btScalar far = (isForward ? hi : lo) * m_inverse[axis];
    if (!(near <= leave && far >= enter && near <= far)) return false;
    enter = btMax(enter, near);
    leave = btMin(leave, far);
  }
  return enter <= leave;
}
