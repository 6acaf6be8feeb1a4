// SPDX-License-Identifier: Zlib
// Ghost objects, whose pairs must be right between two steps: who moves a btGhostObject may read
// what it overlaps in the next line, as btKinematicCharacterController does. Knows which proxies
// are ghosts, and adds and removes their pairs at once. All other pairs wait for the step.
// Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvt.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "exact_pairs.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"

class btDispatcher;
class btOverlapFilterCallback;

/// Works only while GpuLbvhPairSink::needsGhostPairsAtOnce(). Only then are clients known to be
/// btCollisionObjects, and read.
class GpuLbvhGhosts {
 public:
  GpuLbvhGhosts(const GpuLbvhProxies& proxies, GpuLbvhQueries& queries, GpuLbvhPairSink& sink)
      : m_proxies(proxies), m_queries(queries), m_sink(sink) {}

  /// The proxy is new.
  void addProxy(GpuLbvhProxy* proxy) {
    if (isActive()) updateAdded(proxy);
  }
  /// The proxy had the box `before`. Asks the tree of the ghosts for its partners. For a ghost it
  /// queries all boxes, or tests each where the query would have to build a tree, or boxes are
  /// fattened.
  void moveProxy(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btDispatcher* dispatcher) {
    if (isActive()) updateMoved(proxy, before, dispatcher);
  }
  void removeProxy(GpuLbvhProxy* proxy);
  /// Only while there are no proxies. Slots and unique ids begin anew.
  void reset() {
    m_early.clear();
    m_unconfirmed.clear();
  }

  /// The step's pairs are found. They do not know of what callbacks move from now on.
  /// @param filter the step's; null: none
  /// @return whether another one was asked since the last step
  bool beginStep(const btOverlapFilterCallback* filter) {
    m_unconfirmed.swap(m_early);
    m_filter = filter;
    return std::exchange(m_hasAskedAnother, false);
  }
  /// After a step: pairs that were added or removed before it are now as the step found them. Only
  /// the step knows of filters that were changed since.
  void confirmPairs(const GpuLbvhExactPairs& pairs, btDispatcher* dispatcher);

 private:
  struct Ghost {
    GpuLbvhProxy* proxy;
    btDbvtNode* leaf;  ///< null while the box has a NaN
  };

  /// A ghost callback may come and go at any time. This is in every setAabb.
  bool isActive() {
    const bool isNeeded = m_sink.needsGhostPairsAtOnce();
    if (isNeeded != m_isActive) setActive(isNeeded);
    return isNeeded;
  }
  void setActive(bool active);
  void updateAdded(GpuLbvhProxy* proxy);
  void updateMoved(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btDispatcher* dispatcher);
  void addIfGhost(GpuLbvhProxy* proxy);
  void placeLeaf(Ghost& ghost);
  void findPartners(const GpuLbvhProxy* proxy, const lbvh::Aabb& before);
  void findAmongAll(const lbvh::Aabb& box);
  void findAmongGhosts(const lbvh::Aabb& box);
  void updatePairs(GpuLbvhProxy* proxy, const lbvh::Aabb& before, btDispatcher* dispatcher);
  void updatePair(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher);
  bool rememberEarly(lbvh::Pair pair);

  const GpuLbvhProxies& m_proxies;
  GpuLbvhQueries& m_queries;
  GpuLbvhPairSink& m_sink;
  std::vector<Ghost> m_ghosts;
  btDbvt m_tree;  ///< of the ghosts: they are few, and their leaves move one by one
  std::vector<GpuLbvhProxy*> m_partners;  ///< scratch: what overlaps the proxy at hand, or did
  std::vector<lbvh::Pair> m_early;        ///< updated since the last step found its pairs
  std::vector<lbvh::Pair> m_unconfirmed;  ///< updated before; the step at hand decides
  const btOverlapFilterCallback* m_filter = nullptr;  ///< of the last step
  bool m_hasAskedAnother = false;                     ///< since that step
  bool m_isActive = false;                            ///< at the last call
};
