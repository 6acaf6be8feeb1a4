// SPDX-License-Identifier: Zlib
// Implements the sinks for pair caches that a program passes to the constructor. A cache of the
// program's own class gets only the calls that btDbvtBroadphase makes, because the cache's other
// functions may do anything. The behaviour of Bullet's own caches is known. So the sinks also read
// the contents of these caches, and the search applies their rule. Not installed.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "pair_sink.h"

namespace {

btOverlappingPairCallback* const* callbackThatIsNeverCalled(bool isThere) {
  static btGhostPairCallback some;
  static btOverlappingPairCallback *const kSome = &some, *const kNone = nullptr;
  return isThere ? &kSome : &kNone;
}

/// The sink for a cache of the program's own class.
class HandedInPairSink : public GpuLbvhPairSink {
 public:
  HandedInPairSink(GpuLbvhProxies& proxies, btOverlappingPairCache& cache,
                   btOverlappingPairCallback* const* ghostCallback)
      : GpuLbvhPairSink(proxies, ghostCallback), m_cache(cache) {}

  btOverlappingPairCache& cache() final { return m_cache; }
  const void* rule() override { return &m_cache; }

  bool add(lbvh::View<const lbvh::Pair> pairs) override {
    for (const lbvh::Pair pair : pairs) {
      if (!m_proxies.stillLives(pair)) continue;
      const bool isIn = add(m_proxies.at(pair.first), m_proxies.at(pair.second));
      if (m_proxies.stillLives(pair)) m_refused.note(pair, !isIn);
    }
    return true;
  }
  /// The cache may return null although it has added the pair, because Bullet ignores the result.
  /// Then the pair is the last one in the cache's array.
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) override {
    if (offer(a, b) != nullptr) return true;
    const btBroadphasePairArray& pairs = m_cache.getOverlappingPairArray();
    if (pairs.size() == 0) return false;
    const btBroadphasePair& last = pairs[pairs.size() - 1];
    return (last.m_pProxy0 == a && last.m_pProxy1 == b) ||
           (last.m_pProxy0 == b && last.m_pProxy1 == a);
  }
  bool has(GpuLbvhProxy*, GpuLbvhProxy*) override { return false; }

  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override {
    if (dispatcher == nullptr)
      deferAlgorithms([&](const btBroadphasePair& pair) { return isOneOf(pairs, pair); });
    for (const lbvh::Pair pair : pairs)
      if (m_proxies.stillLives(pair))
        takeOut(m_proxies.at(pair.first), m_proxies.at(pair.second), dispatcher);
  }
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) override {
    const lbvh::Pair pair = slotsOf(a, b);
    remove({&pair, 1}, dispatcher);
  }
  void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) final {
    if (proxy->m_hasNoPairs) return;
    if (dispatcher == nullptr)
      deferAlgorithms([&](const btBroadphasePair& pair) {
        return pair.m_pProxy0 == proxy || pair.m_pProxy1 == proxy;
      });
    m_cache.removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  void prepareRemovalOf(btBroadphaseProxy* const*, int, btDispatcher*) override {}

 protected:
  // offer() and takeOut() pass the proxy with the smaller unique id first, as btDbvtBroadphase
  // does.
  btBroadphasePair* offer(GpuLbvhProxy* a, GpuLbvhProxy* b) {
    if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
    return m_cache.addOverlappingPair(a, b);
  }
  void takeOut(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) {
    if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
    m_cache.removeOverlappingPair(a, b, dispatcher);
  }
  /// @param pairs sorted
  bool isOneOf(lbvh::View<const lbvh::Pair> pairs, const btBroadphasePair& pair) const {
    return m_proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1) &&
           std::binary_search(pairs.begin(), pairs.end(), slotsOf(pair.m_pProxy0, pair.m_pProxy1));
  }
  /// Removes the pairs of all `proxies` in one pass. Bullet's caches would scan all pairs once per
  /// proxy.
  void removeInOnePass(btBroadphaseProxy* const* proxies, int count, btDispatcher* dispatcher);

  btOverlappingPairCache& m_cache;

 private:
  /// Calls deferAlgorithm() for each pair that is about to be removed.
  template <class IsRemoved>
  void deferAlgorithms(const IsRemoved& isRemoved) {
    btBroadphasePairArray& pairs = m_cache.getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i)
      if (isRemoved(pairs[i])) deferAlgorithm(pairs[i], nullptr);
  }
};

void HandedInPairSink::removeInOnePass(btBroadphaseProxy* const* proxies, int count,
                                       btDispatcher* dispatcher) {
  struct IsOfThem : btOverlapCallback {
    IsOfThem(HandedInPairSink& s, const btDispatcher* d) : sink(s), dispatcher(d) {}
    bool processOverlap(btBroadphasePair& pair) override {
      if (!sink.m_proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1) ||
          (!static_cast<GpuLbvhProxy*>(pair.m_pProxy0)->m_hasNoPairs &&
           !static_cast<GpuLbvhProxy*>(pair.m_pProxy1)->m_hasNoPairs))
        return false;
      sink.deferAlgorithm(pair, dispatcher);
      return true;
    }
    HandedInPairSink& sink;
    const btDispatcher* const dispatcher;
  } isOfThem(*this, dispatcher);
  for (int i = 0; i < count; ++i) static_cast<GpuLbvhProxy*>(proxies[i])->m_hasNoPairs = true;
  m_cache.processAllOverlappingPairs(&isOfThem, dispatcher);
}

/// The sink for a cache of the program's own class with deferred removal. Such a cache cannot
/// remove a single pair, so the sink edits the cache's array.
class DeferredPairSink : public HandedInPairSink {
 public:
  DeferredPairSink(GpuLbvhProxies& proxies, btOverlappingPairCache& cache)
      : HandedInPairSink(proxies, cache, callbackThatIsNeverCalled(false)) {}
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) final;
  using HandedInPairSink::remove;
};

void DeferredPairSink::remove(lbvh::View<const lbvh::Pair> gone, btDispatcher* dispatcher) {
  if (gone.empty()) return;
  btBroadphasePairArray& pairs = m_cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size();) {
    btBroadphasePair pair = pairs[i];
    if (!isOneOf(gone, pair)) {
      ++i;
      continue;
    }
    pairs.swap(i, pairs.size() - 1);
    pairs.pop_back();
    const int rest = pairs.size();
    deferAlgorithm(pair, dispatcher);
    m_cache.cleanOverlappingPair(pair, dispatcher);
    if (pairs.size() != rest) i = 0;  // restarts: a contact-ended callback has moved pairs
  }
}

/// The sink for Bullet's own caches with deferred removal.
class SortedPairSink final : public DeferredPairSink {
 public:
  using DeferredPairSink::DeferredPairSink;
  const void* rule() override { return m_cache.getOverlapFilterCallback(); }
  /// btNullPairCache returns null even for pairs that it does not refuse.
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) override {
    return offer(a, b) != nullptr || (m_cache.getOverlapFilterCallback() == nullptr &&
                                      m_cache.needsBroadphaseCollision(a, b));
  }
  using DeferredPairSink::add;
  void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                        btDispatcher* dispatcher) override {
    removeInOnePass(proxies, count, dispatcher);
  }
};

/// Gives access to the ghost pair callback of Bullet's hashed cache, which has no getter for it.
struct GhostCallback : private btHashedOverlappingPairCache {
  static btOverlappingPairCallback* const* of(const btHashedOverlappingPairCache& cache) {
    return &(cache.*(&GhostCallback::m_ghostPairCallback));
  }
};

/// The sink for Bullet's hashed cache. That cache identifies proxies by their unique ids, and two
/// broad phases may use the same ids. So the cache may have another broad phase's pair in place of
/// ours.
class HashedPairSink final : public HandedInPairSink {
 public:
  HashedPairSink(GpuLbvhProxies& proxies, btHashedOverlappingPairCache& cache)
      : HandedInPairSink(proxies, cache, GhostCallback::of(cache)) {}
  const void* rule() override { return m_cache.getOverlapFilterCallback(); }

  bool add(lbvh::View<const lbvh::Pair> pairs) override {
    bool areAll = true;
    for (const lbvh::Pair pair : pairs) {
      if (!m_proxies.stillLives(pair)) continue;
      GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
      const btBroadphasePair* added = offer(a, b);
      if (isOfOthers(added, a))
        areAll = false;
      else if (m_proxies.stillLives(pair))
        m_refused.note(pair, added == nullptr);
    }
    return areAll;
  }
  bool add(GpuLbvhProxy* a, GpuLbvhProxy* b) override { return isOurs(offer(a, b), a); }
  bool has(GpuLbvhProxy* a, GpuLbvhProxy* b) override { return isOurs(m_cache.findPair(a, b), a); }
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override {
    for (const lbvh::Pair pair : pairs)
      if (m_proxies.stillLives(pair))
        remove(m_proxies.at(pair.first), m_proxies.at(pair.second), dispatcher);
  }
  void remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) override {
    btBroadphasePair* const pair = m_cache.findPair(a, b);
    if (!isOurs(pair, a)) return;
    deferAlgorithm(*pair, dispatcher);
    takeOut(a, b, dispatcher);
  }
  void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                        btDispatcher* dispatcher) override {
    removeInOnePass(proxies, count, dispatcher);
  }

 private:
  static bool isOfOthers(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && pair->m_pProxy0 != one && pair->m_pProxy1 != one;
  }
  static bool isOurs(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && !isOfOthers(pair, one);
  }
};

/// Whether the cache is exactly of the class Cache. Compares vtable pointers, because Bullet or the
/// program may be built without RTTI. May be false for a cache that another library created,
/// because that library may have its own copy of Bullet.
template <class Cache>
bool isExactly(const btOverlappingPairCache& cache) {
  Cache sample;
  const btOverlappingPairCache& known = sample;
  return std::memcmp(static_cast<const void*>(&cache), static_cast<const void*>(&known),
                     sizeof(void*)) == 0;
}

}  // namespace

std::unique_ptr<GpuLbvhPairSink> makeHandedInPairSink(GpuLbvhProxies& proxies,
                                                      btOverlappingPairCache& cache,
                                                      bool hasGhosts) {
  if (isExactly<btHashedOverlappingPairCache>(cache))
    return std::make_unique<HashedPairSink>(proxies,
                                            static_cast<btHashedOverlappingPairCache&>(cache));
  if (isExactly<btSortedOverlappingPairCache>(cache) || isExactly<btNullPairCache>(cache))
    return std::make_unique<SortedPairSink>(proxies, cache);
  if (cache.hasDeferredRemoval()) return std::make_unique<DeferredPairSink>(proxies, cache);
  return std::make_unique<HandedInPairSink>(proxies, cache, callbackThatIsNeverCalled(hasGhosts));
}
