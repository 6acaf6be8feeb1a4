// SPDX-License-Identifier: Zlib
#include "pair_sink.h"

#include <algorithm>

#include "pair_cache.h"

std::vector<lbvh::Pair> GpuLbvhPairSink::pairs() {
  std::vector<lbvh::Pair> all;
  const btBroadphasePairArray& array = cache().getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i)
    if (m_proxies.ownBoth(array[i].m_pProxy0, array[i].m_pProxy1))
      all.push_back(slotsOf(array[i].m_pProxy0, array[i].m_pProxy1));
  std::sort(all.begin(), all.end());
  return all;
}

// From a copy, because the filter may change the cache.
std::vector<lbvh::Pair> GpuLbvhPairSink::pairsToRefuse() {
  std::vector<lbvh::Pair> refused = pairs();
  std::size_t kept = 0;
  for (const lbvh::Pair pair : refused)
    if (m_proxies.stillLives(pair) &&
        !cache().needsBroadphaseCollision(m_proxies.at(pair.first), m_proxies.at(pair.second)))
      refused[kept++] = pair;
  refused.resize(kept);
  return refused;
}

namespace {

/// Into the own cache, which knows proxies by slot and goes through no other pairs.
class OwnPairSink final : public GpuLbvhPairSink {
 public:
  explicit OwnPairSink(GpuLbvhProxies& proxies) : GpuLbvhPairSink(proxies), m_cache(proxies) {}

  btOverlappingPairCache& cache() override { return m_cache; }
  bool needsGhostPairsAtOnce() const override { return m_cache.hasGhostPairCallback(); }

  bool add(lbvh::View<const lbvh::Pair> pairs) override {
    m_cache.addAll(pairs, m_refused);
    return true;
  }
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override {
    m_cache.removeAll(pairs, dispatcher);
  }
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) override { return m_cache.add(a, b) != nullptr; }
  bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) override { return m_cache.findPair(a, b) != nullptr; }
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) override {
    m_cache.remove(a, b, dispatcher);
  }
  void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) override {
    m_cache.removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  void prepareRemovalOf(btBroadphaseProxy* const*, int, btDispatcher*) override {}

 private:
  GpuLbvhPairCache m_cache;
};

/// Into a cache of the user's, which may hold pairs of other broad phases, too.
class HandedInPairSink : public GpuLbvhPairSink {
 public:
  HandedInPairSink(GpuLbvhProxies& proxies, btOverlappingPairCache& cache, bool hasGhosts)
      : GpuLbvhPairSink(proxies), m_cache(cache), m_hasGhosts(hasGhosts) {}

  btOverlappingPairCache& cache() override { return m_cache; }
  bool needsGhostPairsAtOnce() const override { return m_hasGhosts; }

  bool add(lbvh::View<const lbvh::Pair> pairs) override {
    bool areAll = true;
    for (const lbvh::Pair pair : pairs) {
      if (!m_proxies.stillLives(pair)) continue;
      GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
      const btBroadphasePair* added = m_cache.addOverlappingPair(a, b);
      if (isOfOthers(added, a))
        areAll = false;
      else if (m_proxies.stillLives(pair))
        m_refused.note(pair, added == nullptr && hasRefused(a, b));
    }
    return areAll;
  }
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override {
    for (const lbvh::Pair pair : pairs)
      if (m_proxies.stillLives(pair))
        remove(m_proxies.at(pair.first), m_proxies.at(pair.second), dispatcher);
  }
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) final {
    return isOurs(m_cache.addOverlappingPair(a, b), a);
  }
  bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) final { return isOurs(m_cache.findPair(a, b), a); }
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) final {
    if (!isOfOthers(m_cache.findPair(a, b), a)) m_cache.removeOverlappingPair(a, b, dispatcher);
  }
  void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) override {
    if (!proxy->m_hasNoPairs) m_cache.removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  /// Bullet's caches scan all pairs for each proxy.
  void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                        btDispatcher* dispatcher) override;

 protected:
  /// The cache gave us no pair of the two.
  virtual bool hasRefused(GpuLbvhProxy*, GpuLbvhProxy*) { return true; }

 private:
  /// Whether the cache gave us another broad phase's pair: Bullet's hashed cache knows proxies by
  /// their unique ids, which two broad phases may both have.
  static bool isOfOthers(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && pair->m_pProxy0 != one && pair->m_pProxy1 != one;
  }
  static bool isOurs(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && !isOfOthers(pair, one);
  }

  btOverlappingPairCache& m_cache;
  const bool m_hasGhosts;
};

void HandedInPairSink::prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                                        btDispatcher* dispatcher) {
  struct IsOfThem : btOverlapCallback {
    explicit IsOfThem(const GpuLbvhProxies& p) : all(p) {}
    bool processOverlap(btBroadphasePair& pair) override {
      return all.ownBoth(pair.m_pProxy0, pair.m_pProxy1) &&
             (static_cast<GpuLbvhProxy*>(pair.m_pProxy0)->m_hasNoPairs ||
              static_cast<GpuLbvhProxy*>(pair.m_pProxy1)->m_hasNoPairs);
    }
    const GpuLbvhProxies& all;
  } isOfThem(m_proxies);
  for (int i = 0; i < count; ++i) static_cast<GpuLbvhProxy*>(proxies[i])->m_hasNoPairs = true;
  m_cache.processAllOverlappingPairs(&isOfThem, dispatcher);
}

/// Into a cache with deferred removal (btSortedOverlappingPairCache). It neither removes a pair
/// when asked to nor finds one that it has: its owner edits the array.
class DeferredPairSink final : public HandedInPairSink {
 public:
  using HandedInPairSink::HandedInPairSink;
  bool needsGhostPairsAtOnce() const override { return false; }
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override;
  using HandedInPairSink::remove;

 protected:
  /// btNullPairCache has deferred removal, too. It takes no pairs, and refuses none.
  bool hasRefused(GpuLbvhProxy* a, GpuLbvhProxy* b) override {
    return cache().getOverlapFilterCallback() != nullptr || !cache().needsBroadphaseCollision(a, b);
  }
};

void DeferredPairSink::remove(lbvh::View<const lbvh::Pair> gone, btDispatcher* dispatcher) {
  if (gone.empty()) return;
  btBroadphasePairArray& pairs = cache().getOverlappingPairArray();
  for (int i = 0; i < pairs.size();) {
    btBroadphasePair pair = pairs[i];
    const bool isOurs = m_proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1);
    if (!isOurs ||
        !std::binary_search(gone.begin(), gone.end(), slotsOf(pair.m_pProxy0, pair.m_pProxy1))) {
      ++i;
      continue;
    }
    pairs.swap(i, pairs.size() - 1);
    pairs.pop_back();
    const int left = pairs.size();
    cache().cleanOverlappingPair(pair, dispatcher);
    if (pairs.size() != left) i = 0;  // a callback of a contact's end moved pairs
  }
}

}  // namespace

std::unique_ptr<GpuLbvhPairSink> makeGpuLbvhPairSink(GpuLbvhProxies& proxies,
                                                     btOverlappingPairCache* handedIn,
                                                     bool handedInHasGhosts) {
  if (handedIn == nullptr) return std::make_unique<OwnPairSink>(proxies);
  if (handedIn->hasDeferredRemoval())
    return std::make_unique<DeferredPairSink>(proxies, *handedIn, handedInHasGhosts);
  return std::make_unique<HandedInPairSink>(proxies, *handedIn, handedInHasGhosts);
}
