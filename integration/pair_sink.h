// SPDX-License-Identifier: Zlib
// Defines a common interface to all kinds of pair caches. The broad phase's own cache implements it
// (pair_cache.h). handed_in_cache.cpp implements it for each kind of cache that a program can pass
// to the constructor. The sink is chosen when the broad phase is created. No other code depends on
// the kind of sink. Does not decide which pairs exist. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <memory>
#include <vector>

#include "proxies.h"
#include "refused_pairs.h"

/// Adds and removes pairs of slots, and remembers which pairs were refused. In each call the
/// cache's callbacks may create, move and destroy proxies. Pairs of a proxy that was destroyed
/// since the last step are skipped.
class GpuLbvhPairSink {
 public:
  /// @param ghostCallback points to the cache's ghost callback, which may change at any time
  GpuLbvhPairSink(GpuLbvhProxies& proxies, btOverlappingPairCallback* const* ghostCallback)
      : m_proxies(proxies), m_refused(proxies), m_ghostCallback(ghostCallback) {}
  virtual ~GpuLbvhPairSink() = default;
  GpuLbvhPairSink(const GpuLbvhPairSink&) = delete;
  GpuLbvhPairSink& operator=(const GpuLbvhPairSink&) = delete;

  virtual btOverlappingPairCache& cache() = 0;

  /// Identifies the rule by which the cache accepts overlapping pairs. Null: groups and masks
  /// decide, so the search can leave out pairs that they refuse. Otherwise the cache is offered all
  /// pairs. The result is then the address of the filter callback, or of the cache if it can have
  /// its own rule.
  virtual const void* rule() { return cache().getOverlapFilterCallback(); }
  bool hasOwnRule() { return rule() == &cache(); }

  /// Whether pairs of ghosts must be up to date between two steps. True if there is a ghost
  /// callback and the cache can add and remove a single pair at once.
  bool needsGhostPairsAtOnce() const { return *m_ghostCallback != nullptr; }

  /// Offers overlapping pairs; the cache may refuse some.
  /// @return false if the cache has pairs of another broad phase with the same unique ids
  /// @throws std::bad_alloc; then some of the pairs were added
  virtual bool add(lbvh::View<const lbvh::Pair> pairs) = 0;
  /// @param pairs sorted
  virtual void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) = 0;

  /// Adds a pair of two living proxies. Requires needsGhostPairsAtOnce(). A refusal is not
  /// remembered. It could not be forgotten in time, because steps report the end of an overlap only
  /// for pairs that a step has found.
  /// @return whether the cache has the pair now
  virtual bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) = 0;
  /// Whether the cache has the pair. If this is unknown, the result is false, and the pair may be
  /// added again.
  virtual bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) = 0;
  virtual void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) = 0;

  /// Removes the pairs of a proxy that is about to be destroyed.
  virtual void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) = 0;
  /// Call this before removePairsOf() is called for each of `count` proxies. Removes all their
  /// pairs in one pass, if that is cheaper than one pass per proxy.
  virtual void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                                btDispatcher* dispatcher) = 0;

  /// Call this at the end of a step. Sorts the pairs by unique ids if the program chose this
  /// and the sink controls the order. @throws std::bad_alloc, with nothing changed
  virtual void settleOrder() {}

  /// Frees the algorithms of pairs that were removed without a dispatcher since the last step.
  void freeDeferredAlgorithms(btDispatcher* dispatcher);

  /// This broad phase's pairs in the cache, sorted. @throws std::bad_alloc
  std::vector<lbvh::Pair> pairs();
  /// The subset of pairs() that the rule now refuses. @throws std::bad_alloc
  std::vector<lbvh::Pair> pairsToRefuse();

  /// Pairs that the step offered and the cache refused.
  GpuLbvhRefusedPairs& refusedPairs() { return m_refused; }

 protected:
  /// Call this before a pair is removed. If `dispatcher` is null, nothing can free the algorithm
  /// now, and the world's dispatcher would keep its manifold for ever. So the next step frees the
  /// algorithm.
  void deferAlgorithm(btBroadphasePair& pair, const btDispatcher* dispatcher);

  GpuLbvhProxies& m_proxies;
  GpuLbvhRefusedPairs m_refused;

 private:
  std::vector<btCollisionAlgorithm*> m_deferred;
  btOverlappingPairCallback* const* const m_ghostCallback;
};

/// The sink for a cache that the program owns. The cache may also have pairs of other broad phases.
/// @param hasGhosts whether the cache may have a ghost pair callback; used only if its callback
///   cannot be read
std::unique_ptr<GpuLbvhPairSink> makeHandedInPairSink(GpuLbvhProxies& proxies,
                                                      btOverlappingPairCache& cache,
                                                      bool hasGhosts);
