// SPDX-License-Identifier: Zlib
// Answers ray and box queries of the broad phase. A query searches the blocks of the last step, or
// packs all boxes into blocks first. Then it searches the proxies that have changed since, so it
// sees every change immediately. If there was no query between two steps, later changes are not
// listed until the next query. That query finds the changed proxies in GpuLbvhProxies::changed(),
// which has all changes since the last step. Several threads may query at the same time, but not
// during a change. Not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "broadphase/host/block_query.h"
#include "broadphase/pair_finder.h"
#include "broadphase/tree_query.h"
#include "changed_proxies.h"
#include "proxies.h"

class GpuLbvhQueries {
 public:
  GpuLbvhQueries(GpuLbvhProxies& proxies, lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// Call this when the scene no longer has the proxy's current box, before or after
  /// GpuLbvhProxies marks the proxy as changed.
  void markChanged(GpuLbvhProxy* proxy) {
    if (m_isNoting && !proxy->m_isWaiting) noteChanged(proxy);
  }

  /// Sets the scene to the blocks of the finder's last step. Requires that no box has changed
  /// since. Afterwards no destroyed proxy is listed as changed.
  void useLastStep();

  /// Call this after a step without changes. Keeps the scene, unless the finder no longer has it.
  void keepLastStep();

  /// Makes the next query pack all boxes first.
  void invalidateScene() {
    m_isStale.store(true, std::memory_order_relaxed);
    m_isNoting = false;
  }

  /// How many proxies may change between two queries before all boxes are packed again.
  std::size_t mostWaiting() const { return 64 + m_proxies.boxes().size() / 64; }

  /// False if the next query would have to pack all boxes, or test each of them.
  bool areQuick() {
    noteEarlier();
    return !m_isStale.load(std::memory_order_relaxed) && !m_isLost;
  }

  /// Calls visit(proxy) for each living proxy whose exact box (GpuLbvhBox) `hits` accepts. `visit`
  /// may change the broad phase and query it again. A proxy that it changes is visited at most
  /// once.
  template <class Hits, class Visit>
  void query(const Hits& hits, const Visit& visit) {
    const Running running(*this);
    const auto visitLiving = [&](GpuLbvhProxy* proxy) {
      if (proxy->isAlive() && hits(GpuLbvhBox(proxy))) visit(proxy);
    };
    if (refreshScene(running))
      queryScene(hits, visitLiving);
    else
      queryAll(hits, visitLiving);
  }

  /// Whether the caller is within the visit() of a query on this thread.
  bool areRunning() const { return Running::contains(Running::innermost(), *this); }

 private:
  /// A running query. Each thread has a list of its nested queries.
  class Running {
   public:
    explicit Running(const GpuLbvhQueries& of);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    bool isNested() const { return contains(m_outer, m_of); }
    static const Running* innermost();
    static bool contains(const Running* list, const GpuLbvhQueries& queries);

   private:
    const GpuLbvhQueries& m_of;
    const Running* const m_outer;
  };

  template <class Hits, class VisitLiving>
  void queryScene(const Hits& hits, const VisitLiving& visitLiving) {
    // Proxies that visit() changes are appended after these.
    const std::size_t waiting = m_changed.waiting();
    const auto visitUnchanged = [&](std::uint32_t slot) {
      GpuLbvhProxy* proxy = m_proxies.at(slot);
      if (!proxy->m_isChanged) visitLiving(proxy);
    };
    if (m_scene != nullptr) lbvh::queryPacked(*m_scene, hits, visitUnchanged);
    m_changed.query(hits, waiting, visitLiving);
  }

  template <class Hits, class VisitLiving>
  void queryAll(const Hits& hits, const VisitLiving& visitLiving) {
    const std::size_t slots = m_proxies.boxes().size();
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      if (hits(m_proxies.boxes()[slot])) visitLiving(m_proxies.at(slot));
  }

  void noteChanged(GpuLbvhProxy* proxy);
  void noteEarlier();
  void clearChanged();
  bool refreshScene(const Running& running);
  void placeChanged();
  bool packAll();

  GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  /// The blocks of the finder or of m_tree; null: no boxes.
  const lbvh::PackedBoxes* m_scene = nullptr;
  std::optional<lbvh::BoxTree> m_tree;
  bool m_isTree = false;            ///< the scene is m_tree's, not the last step's
  GpuLbvhChangedProxies m_changed;  ///< proxies that have changed since the scene was packed
  /// Changes are added to m_changed; if false, the scene is stale or behind.
  bool m_isNoting = false;
  std::atomic<bool> m_isAsked{false};  ///< there was a query since the last step
  std::atomic<bool> m_isStale{false};  ///< the next query must pack all boxes
  std::atomic<bool> m_isBehind{true};  ///< m_changed or its tree lacks changes
  bool m_isLost = false;               ///< there was no memory to pack all boxes
  std::mutex m_rebuild;
};
