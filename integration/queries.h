// Ray and box queries of the broad phase: what the finder's last step left in order, or a tree,
// plus the proxies that changed since, tested one by one. Sees every change at once; safe on many
// threads between changes. Not installed.
#pragma once

#include <LinearMath/btVector3.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "broadphase/pair_finder.h"
#include "broadphase/query/block_query.h"
#include "broadphase/query/tree_query.h"
#include "proxies.h"

/// A ray or a swept box, as btBroadphaseRayCallback describes it, against boxes.
class GpuLbvhRay {
 public:
  GpuLbvhRay(const btVector3& from, const struct btBroadphaseRayCallback& callback,
             const btVector3& sweptMin, const btVector3& sweptMax);

  /// Closed, so that of boxes with min <= max it accepts all that Bullet's own test (btRayAabb2)
  /// does, rounding included, and those that the ray only touches.
  template <class Box>
  bool operator()(const Box& box) const;

 private:
  btVector3 m_from, m_inverse, m_sweptMin, m_sweptMax;
  btScalar m_length;
  bool m_isParallel[3];  ///< no bound for what contains the origin
  bool m_isInfinite[3];  ///< and all else is missed
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

  /// visit(proxy) for each living proxy whose exact box (GpuLbvhBox) `hits` accepts. It may change
  /// the broad phase and ask again: what it changes itself is visited once at most.
  template <class Hits, class Visit>
  void query(const Hits& hits, const Visit& visit) {
    const Running running(*this);
    const auto visitLiving = [&](GpuLbvhProxy* proxy) {
      if (proxy->isAlive() && hits(GpuLbvhBox(proxy))) visit(proxy);
    };
    if (!refreshTree(running)) {
      const std::size_t slots = m_proxies.boxes().size;
      for (std::uint32_t slot = 0; slot < slots; ++slot)
        if (hits(m_proxies.boxes()[slot])) visitLiving(m_proxies.at(slot));
      return;
    }
    const std::size_t changed = m_changed.size();
    const auto visitUnchanged = [&](std::uint32_t slot) {
      GpuLbvhProxy* proxy = m_proxies.at(slot);
      if (!proxy->m_isChanged) visitLiving(proxy);
    };
    lbvh::Tree tree = m_step.resting == nullptr ? m_finder.tree() : lbvh::Tree{};
    // Without the boxes, which move in memory when one is created.
    const lbvh::View<const std::uint32_t> side = std::exchange(tree.oversizedBoxes, {});
    lbvh::queryTree(tree, {}, hits, visitUnchanged);
    for (const std::uint32_t slot : side) visitUnchanged(slot);
    for (const lbvh::PackedBoxes* part : {m_step.resting, m_step.moving})
      if (part != nullptr) lbvh::queryPacked(*part, hits, visitUnchanged);
    for (std::size_t i = 0; i < changed; ++i) visitLiving(m_changed[i]);
  }

  /// Whether the caller is called by a query's visit().
  bool areRunning() const { return Running::isIn(*this, Running::innermost()); }

 private:
  /// A query, for as long as it lives, on this thread's list of those within which it is.
  class Running {
   public:
    explicit Running(const GpuLbvhQueries& of);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    bool isNested() const { return isIn(m_of, m_outer); }
    static const Running* innermost();
    static bool isIn(const GpuLbvhQueries& queries, const Running* list);

   private:
    const GpuLbvhQueries& m_of;
    const Running* const m_outer;
  };

  bool remember(GpuLbvhProxy* proxy);
  void forgetChanged();
  bool refreshTree(const Running& running);

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
    // Bullet writes 1e18 (1e30) for the inverse of 0 and multiplies by it: what is next to the
    // origin by less than its own inverse, it reaches.
    if (m_isParallel[axis] && lo <= 0 && hi >= 0) continue;
    if (m_isInfinite[axis]) return false;
    const bool isForward = m_inverse[axis] > 0;
    const btScalar near = (isForward ? lo : hi) * m_inverse[axis];
    const btScalar far = (isForward ? hi : lo) * m_inverse[axis];
    if (!(near <= leave && far >= enter && near <= far)) return false;
    enter = btMax(enter, near);
    leave = btMin(leave, far);
  }
  return enter <= leave;
}
