// SPDX-License-Identifier: Zlib
#include "pair_sink.h"

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "pair_cache.h"

void GpuLbvhPairSink::leaveAlgorithm(btBroadphasePair& pair, const btDispatcher* dispatcher) {
  if (dispatcher != nullptr || pair.m_algorithm == nullptr) return;
  try {
    m_left.push_back(pair.m_algorithm);
    pair.m_algorithm = nullptr;
  } catch (const std::bad_alloc&) {
    // then it is never freed, as with Bullet's own broad phases
  }
}

void GpuLbvhPairSink::freeLeftAlgorithms(btDispatcher* dispatcher) {
  if (dispatcher == nullptr || m_left.empty()) return;
  const auto left = std::exchange(m_left, {});  // a contact-ended callback may remove pairs
  for (btCollisionAlgorithm* algorithm : left) {
    algorithm->~btCollisionAlgorithm();
    dispatcher->freeCollisionAlgorithm(algorithm);
  }
}

std::vector<lbvh::Pair> GpuLbvhPairSink::pairs() {
  std::vector<lbvh::Pair> all;
  const btBroadphasePairArray& array = cache().getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i)
    if (m_proxies.ownBoth(array[i].m_pProxy0, array[i].m_pProxy1))
      all.push_back(slotsOf(array[i].m_pProxy0, array[i].m_pProxy1));
  std::sort(all.begin(), all.end());
  return all;
}

// Works on a copy, because the filter may change the cache.
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

/// Gives access to the ghost pair callback of Bullet's hashed cache, which has no getter for it.
struct GhostCallback : private btHashedOverlappingPairCache {
  static btOverlappingPairCallback* const* of(const btHashedOverlappingPairCache& cache) {
    return &(cache.*(&GhostCallback::m_ghostPairCallback));
  }
};

/// The cache if it is exactly a btHashedOverlappingPairCache, else null. Compares vtable pointers,
/// because Bullet may be built without RTTI.
const btHashedOverlappingPairCache* asHashedCache(const btOverlappingPairCache& cache) {
  const btHashedOverlappingPairCache sample;
  const btOverlappingPairCache& known = sample;
  const bool isSame = std::memcmp(static_cast<const void*>(&cache),
                                  static_cast<const void*>(&known), sizeof(void*)) == 0;
  return isSame ? static_cast<const btHashedOverlappingPairCache*>(&cache) : nullptr;
}

/// A pointer to the cache's ghost callback. If that cannot be read, `isSaidToHaveOne` decides
/// whether it points to null.
btOverlappingPairCallback* const* ghostCallbackOf(const btOverlappingPairCache& cache,
                                                  bool isSaidToHaveOne) {
  static btGhostPairCallback some;  // never called
  static btOverlappingPairCallback *const kSome = &some, *const kNone = nullptr;
  if (const auto* hashed = asHashedCache(cache)) return GhostCallback::of(*hashed);
  return isSaidToHaveOne ? &kSome : &kNone;
}

/// The sink for a cache of the program, which may also have pairs of other broad phases.
class HandedInPairSink : public GpuLbvhPairSink {
 public:
  HandedInPairSink(GpuLbvhProxies& proxies, btOverlappingPairCache& cache, bool hasGhosts)
      : GpuLbvhPairSink(proxies, ghostCallbackOf(cache, hasGhosts)), m_cache(cache) {}

  btOverlappingPairCache& cache() override { return m_cache; }

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
    btBroadphasePair* const pair = m_cache.findPair(a, b);
    if (isOfOthers(pair, a)) return;
    if (pair != nullptr) leaveAlgorithm(*pair, dispatcher);
    m_cache.removeOverlappingPair(a, b, dispatcher);
  }
  void removePairsOf(GpuLbvhProxy* proxy, btDispatcher* dispatcher) override {
    if (proxy->m_hasNoPairs) return;
    if (dispatcher == nullptr) leaveAlgorithmsOf(proxy);
    m_cache.removeOverlappingPairsContainingProxy(proxy, dispatcher);
  }
  /// One pass for all proxies: Bullet's caches would scan all pairs once per proxy.
  void prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                        btDispatcher* dispatcher) override;

 protected:
  /// Whether the cache refused a pair for which it returned null.
  virtual bool hasRefused(GpuLbvhProxy*, GpuLbvhProxy*) { return true; }

 private:
  void leaveAlgorithmsOf(const GpuLbvhProxy* proxy) {
    btBroadphasePairArray& pairs = m_cache.getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i)
      if (pairs[i].m_pProxy0 == proxy || pairs[i].m_pProxy1 == proxy)
        leaveAlgorithm(pairs[i], nullptr);
  }
  /// Whether the cache returned a pair of another broad phase. Bullet's hashed cache identifies
  /// proxies by their unique ids, and two broad phases may use the same ids.
  static bool isOfOthers(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && pair->m_pProxy0 != one && pair->m_pProxy1 != one;
  }
  static bool isOurs(const btBroadphasePair* pair, const GpuLbvhProxy* one) {
    return pair != nullptr && !isOfOthers(pair, one);
  }

  btOverlappingPairCache& m_cache;
};

void HandedInPairSink::prepareRemovalOf(btBroadphaseProxy* const* proxies, int count,
                                        btDispatcher* dispatcher) {
  struct IsOfThem : btOverlapCallback {
    IsOfThem(HandedInPairSink& s, const btDispatcher* d) : sink(s), dispatcher(d) {}
    bool processOverlap(btBroadphasePair& pair) override {
      if (!sink.m_proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1) ||
          (!static_cast<GpuLbvhProxy*>(pair.m_pProxy0)->m_hasNoPairs &&
           !static_cast<GpuLbvhProxy*>(pair.m_pProxy1)->m_hasNoPairs))
        return false;
      sink.leaveAlgorithm(pair, dispatcher);
      return true;
    }
    HandedInPairSink& sink;
    const btDispatcher* const dispatcher;
  } isOfThem(*this, dispatcher);
  for (int i = 0; i < count; ++i) static_cast<GpuLbvhProxy*>(proxies[i])->m_hasNoPairs = true;
  m_cache.processAllOverlappingPairs(&isOfThem, dispatcher);
}

/// The sink for a cache with deferred removal (btSortedOverlappingPairCache). Such a cache does not
/// remove a single pair: its broad phase edits the array instead.
class DeferredPairSink final : public HandedInPairSink {
 public:
  DeferredPairSink(GpuLbvhProxies& proxies, btOverlappingPairCache& cache)
      : HandedInPairSink(proxies, cache, false) {}
  void remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) override;
  using HandedInPairSink::remove;

 protected:
  /// btNullPairCache has deferred removal, too. It returns null for every pair, but that is no
  /// refusal.
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
    leaveAlgorithm(pair, dispatcher);
    cache().cleanOverlappingPair(pair, dispatcher);
    if (pairs.size() != left) i = 0;  // a contact-ended callback has moved pairs
  }
}

}  // namespace

std::unique_ptr<GpuLbvhPairSink> makeGpuLbvhPairSink(GpuLbvhProxies& proxies,
                                                     btOverlappingPairCache* handedIn,
                                                     bool handedInHasGhosts) {
  if (handedIn == nullptr) return std::make_unique<GpuLbvhPairCache>(proxies);
  if (handedIn->hasDeferredRemoval()) return std::make_unique<DeferredPairSink>(proxies, *handedIn);
  return std::make_unique<HandedInPairSink>(proxies, *handedIn, handedInHasGhosts);
}
