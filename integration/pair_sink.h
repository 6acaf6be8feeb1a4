// Where a broad phase's pairs go: into its own pair cache, or into one that was handed in, which
// may be one with deferred removal, and may hold pairs of other broad phases, too. Does not decide
// which pairs there are. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <vector>

#include "pair_cache.h"
#include "proxies.h"

/// Pairs by slot. Callbacks of the cache may create, move and destroy proxies in each call: pairs
/// of what was destroyed since the last step are passed over.
class GpuLbvhPairSink {
 public:
  /// @param handedIn null: the own cache
  GpuLbvhPairSink(const GpuLbvhProxies& proxies, btOverlappingPairCache* handedIn)
      : m_proxies(proxies),
        m_own(proxies),
        m_cache(handedIn != nullptr ? *handedIn : static_cast<btOverlappingPairCache&>(m_own)) {}

  btOverlappingPairCache& cache() const { return m_cache; }
  bool isOwn() const { return &m_cache == &m_own; }
  bool hasGhostPairCallback() const { return m_own.hasGhostPairCallback(); }

  /// @return false if the cache has, by the same unique ids, pairs of another broad phase
  /// @throws std::bad_alloc with the pairs so far added
  bool add(lbvh::View<const lbvh::Pair> pairs);
  /// @param pairs sorted
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher);

  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b);
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher);

  /// Removes the pairs of all proxies that are m_isDoomed.
  void removeDoomed(btDispatcher* dispatcher);

  /// The pairs that the cache has of this broad phase, sorted. @throws std::bad_alloc
  std::vector<lbvh::Pair> pairs() const;
  /// Those of them that the filter refuses now, sorted. @throws std::bad_alloc
  std::vector<lbvh::Pair> refused() const;

 private:
  /// Whether the cache gave us another broad phase's pair: Bullet's hashed cache knows proxies by
  /// their unique ids, which two broad phases may both have.
  static bool isOfOthers(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && pair->m_pProxy0 != one && pair->m_pProxy1 != one;
  }
  void removeDeferred(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher);

  const GpuLbvhProxies& m_proxies;
  GpuLbvhPairCache m_own;  ///< empty if another was handed in
  btOverlappingPairCache& m_cache;
};
