// SPDX-License-Identifier: Zlib
// Adds the pairs of ghost objects between two steps. A program may move a btGhostObject and read
// its overlaps in the next line, as btKinematicCharacterController does. So this class knows which
// proxies are ghosts, and adds their pairs at once. Pairs whose boxes have parted are removed in
// the step, as in btDbvtBroadphase. So a program may move the objects of a ghost's list while it
// iterates over that list. All other pairs are added in the step. Not installed.
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

/// Active only while GpuLbvhPairSink::needsGhostPairsAtOnce(). Only then are clients known to be
/// btCollisionObjects, so only then are they read.
class GpuLbvhGhosts {
 public:
  GpuLbvhGhosts(GpuLbvhProxies& proxies, GpuLbvhQueries& queries, GpuLbvhPairSink& sink)
      : m_proxies(proxies), m_queries(queries), m_sink(sink), m_rule(sink.rule()) {}

  /// A cheap test for each setAabb(). If it returns false, areActive() would return false and
  /// change nothing.
  bool mayBeActive() const { return m_isActive || m_sink.needsGhostPairsAtOnce(); }
  /// Whether pairs of ghosts are needed at once. Lists the ghosts when the answer changes, because
  /// programs may set and remove a ghost callback at any time.
  bool areActive() {
    const bool isNeeded = m_sink.needsGhostPairsAtOnce();
    if (isNeeded != m_isActive) setActive(isNeeded);
    return isNeeded;
  }

  /// Adds the pairs of a new proxy.
  void addProxy(GpuLbvhProxy* proxy) {
    if (areActive()) addNewProxy(proxy);
  }
  /// Adds the pairs of a proxy that has moved. Requires areActive(). If the proxy is not a ghost,
  /// searches the tree of ghosts. A ghost within its enlarged box is tested against the proxies
  /// near it. For a ghost that has left its enlarged box, a query searches all boxes. If the query
  /// would have to pack all boxes first, or if boxes are fattened, the ghost is tested against each
  /// box instead.
  void moveProxy(GpuLbvhProxy* proxy);
  void removeProxy(GpuLbvhProxy* proxy);
  /// Forgets all pairs, because slots and unique ids restart. Requires that there are no proxies.
  void reset() {
    m_early.clear();
    m_unconfirmed.clear();
  }

  /// Call this after the step has found its pairs. If callbacks move proxies after this call,
  /// the step's pairs do not reflect these moves.
  /// @param rule the step's GpuLbvhPairSink::rule()
  /// @return whether another rule was applied since the last step
  bool beginStep(const void* rule) {
    forgetRepeated();
    // If the last step was interrupted, it has left some pairs here. They are not needed, because
    // this step then checks all pairs.
    m_unconfirmed.clear();
    m_unconfirmed.swap(m_early);
    m_isInStep = true;
    m_rule = rule;
    return std::exchange(m_hasAskedAnother, false);
  }
  /// Call this at the end of a step. Compares the pairs that were added before the step with the
  /// step's result, and corrects the cache. The two can differ, because boxes may have parted
  /// again, and only the step has read changed filters.
  void confirmPairs(const GpuLbvhExactPairs& pairs, btDispatcher* dispatcher);

 private:
  /// A ghost, and all that it can overlap while it stays within its enlarged box. These are ghosts
  /// whose enlarged boxes overlap this enlarged box, and other proxies whose boxes have overlapped
  /// it.
  struct Ghost {
    GpuLbvhProxy* proxy;
    btDbvtNode* leaf = nullptr;  ///< the enlarged box; null while the box has a NaN
    bool knowsNear = false;
    std::vector<std::uint32_t> near = {};  ///< slots; some may be free or no longer exist
  };

  void setActive(bool active);
  void addNewProxy(GpuLbvhProxy* proxy);
  void addIfGhost(GpuLbvhProxy* proxy);
  void placeLeaf(Ghost& ghost);
  void findPartners(const GpuLbvhProxy* proxy);
  void renewNear(Ghost& ghost);
  void addNear(Ghost& ghost, std::uint32_t slot);
  void findGhosts(const GpuLbvhProxy* proxy);
  bool isPackingWorthIt();
  void findAmongAll(const lbvh::Aabb& box);
  void addPairsOf(GpuLbvhProxy* proxy);
  void addPair(lbvh::Pair pair);
  bool rememberEarly(lbvh::Pair pair);
  void forgetRepeated();

  GpuLbvhProxies& m_proxies;
  GpuLbvhQueries& m_queries;
  GpuLbvhPairSink& m_sink;
  std::vector<Ghost> m_ghosts;
  btDbvt m_tree;                          ///< the enlarged boxes of all ghosts
  std::vector<GpuLbvhProxy*> m_partners;  ///< scratch: possible partners of one proxy
  /// Pairs that were added or refused since the last step found its pairs.
  std::vector<lbvh::Pair> m_early;
  /// Pairs that were added or refused before the running step found its pairs.
  std::vector<lbvh::Pair> m_unconfirmed;
  const void* m_rule;              ///< GpuLbvhPairSink::rule() of the last step
  bool m_hasAskedAnother = false;  ///< another rule was applied since that step
  bool m_isInStep = false;         ///< from beginStep() until all pairs are confirmed
  bool m_isActive = false;         ///< result of the last areActive()
  std::size_t m_moves = 0;  ///< moves of proxies since the last test of a ghost against all boxes
  std::size_t m_tests = 0;  ///< tests of a ghost against all boxes, with few moves between them
};
