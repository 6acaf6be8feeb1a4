// SPDX-License-Identifier: Zlib
// Where a broad phase's pairs go: one interface for its own pair cache and for each kind of cache
// that can be handed in. The sink is chosen when the broad phase is made. No other code depends on
// its kind. Does not decide which pairs there are. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <memory>
#include <vector>

#include "proxies.h"
#include "refused_pairs.h"

/// Takes pairs by slot, and remembers which were refused. A callback of the cache may create, move
/// and destroy proxies in each call, so pairs of a proxy that was destroyed since the last step are
/// passed over.
class GpuLbvhPairSink {
 public:
  explicit GpuLbvhPairSink(GpuLbvhProxies& proxies) : m_proxies(proxies), m_refused(proxies) {}
  virtual ~GpuLbvhPairSink() = default;
  GpuLbvhPairSink(const GpuLbvhPairSink&) = delete;
  GpuLbvhPairSink& operator=(const GpuLbvhPairSink&) = delete;

  virtual btOverlappingPairCache& cache() = 0;

  /// Whether pairs of ghosts must be right between two steps: there is a ghost callback, and the
  /// cache can add and remove a single pair at once.
  virtual bool needsGhostPairsAtOnce() const = 0;

  /// Offers overlapping pairs; the cache may refuse some.
  /// @return false if the cache has, by the same unique ids, pairs of another broad phase
  /// @throws std::bad_alloc with the pairs so far added
  virtual bool add(lbvh::View<const lbvh::Pair> pairs) = 0;
  /// @param pairs sorted
  virtual void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) = 0;

  /// A single pair, of two living proxies; only while needsGhostPairsAtOnce(). It is not remembered
  /// if it is refused: only the step knows which pairs overlap until it says otherwise.
  /// @return whether the cache has it now
  virtual bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) = 0;
  virtual bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) = 0;
  virtual void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) = 0;

  /// Removes the pairs of a proxy that is about to be destroyed.
  virtual void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) = 0;
  /// To be called before removePairsOf is called for each of `count` proxies. Removes all their
  /// pairs in one pass, if that is cheaper than a pass for each.
  virtual void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                                btDispatcher* dispatcher) = 0;

  /// The pairs that the cache has of this broad phase, sorted. @throws std::bad_alloc
  std::vector<lbvh::Pair> pairs();
  /// Those of them that the filter would refuse now, sorted. @throws std::bad_alloc
  std::vector<lbvh::Pair> pairsToRefuse();

  /// Of the pairs that the step offered.
  GpuLbvhRefusedPairs& refusedPairs() { return m_refused; }

 protected:
  GpuLbvhProxies& m_proxies;
  GpuLbvhRefusedPairs m_refused;
};

/// @param handedIn used, not owned; null: an own cache, owned
/// @param handedInHasGhosts whether a cache that is handed in has a ghost pair callback
std::unique_ptr<GpuLbvhPairSink> makeGpuLbvhPairSink(GpuLbvhProxies& proxies,
                                                     btOverlappingPairCache* handedIn,
                                                     bool handedInHasGhosts);
