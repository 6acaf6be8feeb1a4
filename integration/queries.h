// SPDX-License-Identifier: Zlib
// Ray and box queries of the broad phase. A query searches the blocks of the last step, or a tree.
// Then it tests the proxies that have changed since, one by one. So it sees every change at once.
// Safe on many threads between changes. Not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "broadphase/host/scene_query.h"
#include "broadphase/pair_finder.h"
#include "proxies.h"

class GpuLbvhQueries {
 public:
  GpuLbvhQueries(GpuLbvhProxies& proxies, lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// The proxy's box is no longer what the scene has of it.
  void markChanged(GpuLbvhProxy* proxy);

  /// From now on the scene is what the finder's step left, which ran over the boxes as they are.
  void useLastStep();

  /// The boxes are as in the last step. The scene stays, unless the finder had to give it up.
  void keepLastStep();

  /// The next query builds a tree first.
  void invalidateScene() { m_isStale.store(true, std::memory_order_relaxed); }

  /// Whether a query would neither build a tree nor test all boxes.
  bool areQuick() const { return !m_isStale.load(std::memory_order_relaxed) && !m_isLost; }

  /// Calls visit(proxy) for each living proxy whose exact box (GpuLbvhBox) `hits` accepts. `visit`
  /// may change the broad phase and query it again; what it changes is visited once at most.
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

  /// Whether the caller is called by a query's visit().
  bool areRunning() const { return Running::contains(Running::innermost(), *this); }

 private:
  /// A query while it runs: an element of its thread's list of the queries that run within each
  /// other.
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
    // Those that visit() itself changes come behind the end of this list.
    const std::size_t changed = m_changed.size();
    const lbvh::SceneQuery scene = m_scene;
    scene.forEach(hits, [&](std::uint32_t slot) {
      GpuLbvhProxy* proxy = m_proxies.at(slot);
      if (!proxy->m_isChanged) visitLiving(proxy);
    });
    for (std::size_t i = 0; i < changed; ++i) visitLiving(m_changed[i]);
  }

  template <class Hits, class VisitLiving>
  void queryAll(const Hits& hits, const VisitLiving& visitLiving) {
    const std::size_t slots = m_proxies.boxes().size;
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      if (hits(m_proxies.boxes()[slot])) visitLiving(m_proxies.at(slot));
  }

  bool appendChanged(GpuLbvhProxy* proxy);
  void clearChanged();
  bool refreshScene(const Running& running);

  GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  lbvh::SceneQuery m_scene;
  std::vector<GpuLbvhProxy*> m_changed;  ///< a small share of all: beyond that a tree is built
  std::atomic<bool> m_isStale{false};    ///< the scene: a tree must be built
  bool m_isLost = false;                 ///< there was no memory for one
  std::mutex m_rebuild;
};
