// Box queries in the middle of many changes: the last tree still serves while boxes have only
// drifted from it, if the query is inflated by as much; boxes that went far are tested one by one.
// For ghosts, which ask while all other objects are being moved. Not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/pair_finder.h"
#include "broadphase/tree_query.h"
#include "proxies.h"
#include "queries.h"

class GpuLbvhDrift {
 public:
  GpuLbvhDrift(const GpuLbvhProxies& proxies, const lbvh::PairFinder& finder,
               const GpuLbvhQueries& queries)
      : m_proxies(proxies), m_finder(finder), m_queries(queries) {}

  /// To be told of every change; where some were missed, `forget`. A new proxy had no box.
  void changed(GpuLbvhProxy* proxy, const lbvh::Aabb& before);
  void forget();

  /// visit(proxy) for each living proxy whose box (GpuLbvhProxies::boxes) overlaps this one.
  template <class Visit>
  void query(const lbvh::Aabb& box, const Visit& visit) {
    const lbvh::View<const lbvh::Aabb> boxes = m_proxies.boxes();
    const auto test = [&](std::uint32_t slot) {
      if (slot < boxes.size && lbvh::overlap(box, boxes[slot]) && m_proxies.at(slot)->m_isAlive)
        visit(m_proxies.at(slot));
    };
    if (!treeServes()) {
      for (std::uint32_t slot = 0; slot < boxes.size; ++slot) test(slot);
      return;
    }
    const Inflated inflated(box, m_slack);
    const auto meets = [&](const auto& bounds) { return lbvh::overlap(inflated, bounds); };
    lbvh::queryTree(m_finder.tree(), boxes, meets, [&](std::uint32_t slot) {
      if (!m_proxies.at(slot)->m_isFar) test(slot);
    });
    for (const GpuLbvhProxy* proxy : m_far) test(proxy->m_slot);
  }

 private:
  struct Inflated {
    Inflated(const lbvh::Aabb& box, double by);
    double min[3], max[3];
  };

  bool treeServes();
  void restart();
  bool isNear(std::uint32_t slot, const lbvh::Aabb& before);
  float smallDistance() const;

  const GpuLbvhProxies& m_proxies;
  const lbvh::PairFinder& m_finder;
  const GpuLbvhQueries& m_queries;
  std::vector<float> m_drift;  // by slot, since the tree was built: at most m_limit
  std::vector<GpuLbvhProxy*> m_far;
  float m_limit = 0, m_slack = 0;
  unsigned m_build = 0;  // the tree that this is about
  bool m_isComplete = false;
};
