#include "GpuLbvhBroadphase.h"

#include <LinearMath/btQuickprof.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "exact_pairs.h"
#include "ghosts.h"
#include "pair_cache.h"
#include "proxies.h"
#include "queries.h"

namespace {

/// The finder that was asked for, or the best this machine has; its stats say why.
lbvh::PairFinder makeFinder(lbvh::Options options) {
  options.threads = std::max(options.threads, 0);
  if (!lbvh::whyUnavailable(options.backend).empty()) options.backend = lbvh::Backend::automatic;
  return lbvh::PairFinder(options);
}

/// A pair of the cache as the finder names it.
lbvh::Pair slots(const btBroadphasePair& pair) {
  return lbvh::makePair(static_cast<const GpuLbvhProxy*>(pair.m_pProxy0)->m_slot,
                        static_cast<const GpuLbvhProxy*>(pair.m_pProxy1)->m_slot);
}

}  // namespace

struct GpuLbvhBroadphase::Impl {
  Impl(const GpuLbvhOptions& givenOptions, btOverlappingPairCache* handedIn)
      : options(givenOptions),
        proxies(options.margin),
        finder(makeFinder(options)),
        exact(proxies, finder),
        queries(proxies, finder),
        ghosts(proxies, queries),
        ownCache(proxies),
        cache(handedIn != nullptr ? handedIn : &ownCache) {}

  GpuLbvhGhosts& ghostsNow() {
    ghosts.setCallbackIsThere(cache == &ownCache ? ownCache.hasGhostPairCallback()
                                                 : options.cacheHasGhosts);
    return ghosts;
  }

  void destroy(GpuLbvhProxy* proxy);
  /// False, with the reason in `error`, if the step could not be finished.
  bool update(bool byGroup);
  void updateExact();
  void remove(btDispatcher* dispatcher);
  void removeDeferred(btDispatcher* dispatcher);
  void removeRefused(btDispatcher* dispatcher);
  void offer(lbvh::View<const lbvh::Pair> pairs);
  /// Offers all pairs that the cache does not have, not only those that are new.
  void offerMissing();
  std::vector<lbvh::Pair> missingPairs();

  const GpuLbvhOptions options;
  GpuLbvhProxies proxies;
  lbvh::PairFinder finder;
  GpuLbvhExactPairs exact;
  GpuLbvhQueries queries;
  GpuLbvhGhosts ghosts;
  GpuLbvhPairCache ownCache;  ///< empty if another was handed in
  btOverlappingPairCache* cache;
  const btOverlapFilterCallback* lastFilter = nullptr;  ///< of the last step
  bool mustRefilter = false;                            ///< ask for every pair anew
  bool wasByGroup = true;                               ///< of the last step that was finished
  bool isInStep = true;  ///< the cache was offered every pair of the finder
  char error[200] = "";  ///< fixed: it is written when there may be no memory
};

GpuLbvhBroadphase::GpuLbvhBroadphase(const GpuLbvhOptions& options,
                                     btOverlappingPairCache* pairCache)
    : m_impl(std::make_unique<Impl>(options, pairCache)) {}

GpuLbvhBroadphase::~GpuLbvhBroadphase() = default;

btBroadphaseProxy* GpuLbvhBroadphase::createProxy(const btVector3& aabbMin,
                                                  const btVector3& aabbMax, int /*shapeType*/,
                                                  void* userPtr, int collisionFilterGroup,
                                                  int collisionFilterMask,
                                                  btDispatcher* /*dispatcher*/) {
  try {
    GpuLbvhProxy* proxy = m_impl->proxies.create(aabbMin, aabbMax, userPtr, collisionFilterGroup,
                                                 collisionFilterMask);
    m_impl->queries.changed(proxy);
    m_impl->ghostsNow().created(proxy, *m_impl->cache);
    return proxy;
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhBroadphase: out of memory");
    return nullptr;
  }
}

void GpuLbvhBroadphase::destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  auto* own = static_cast<GpuLbvhProxy*>(proxy);
  // Now, not later: a ghost callback reads the client, which the caller deletes next.
  m_impl->cache->removeOverlappingPairsContainingProxy(own, dispatcher);
  m_impl->destroy(own);
}

void GpuLbvhBroadphase::setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                                const btVector3& aabbMax, btDispatcher* dispatcher) {
  auto* own = static_cast<GpuLbvhProxy*>(proxy);
  const lbvh::Aabb before = m_impl->proxies.boxes()[own->m_slot];
  if (!m_impl->proxies.setAabb(own, aabbMin, aabbMax)) return;
  m_impl->queries.changed(own);
  m_impl->ghostsNow().moved(own, before, *m_impl->cache, dispatcher);
}

bool GpuLbvhBroadphase::createProxies(const GpuLbvhNewProxy* objects, int count,
                                      btBroadphaseProxy** proxies, btDispatcher* dispatcher) {
  try {
    m_impl->proxies.reserve(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    const GpuLbvhNewProxy& o = objects[i];
    proxies[i] =
        createProxy(o.aabbMin, o.aabbMax, o.shapeType, o.client, o.group, o.mask, dispatcher);
  }
  return true;
}

void GpuLbvhBroadphase::setAabbs(btBroadphaseProxy* const* proxies, const btVector3* aabbMins,
                                 const btVector3* aabbMaxs, int count, btDispatcher* dispatcher) {
  for (int i = 0; i < count; ++i) setAabb(proxies[i], aabbMins[i], aabbMaxs[i], dispatcher);
}

void GpuLbvhBroadphase::destroyProxies(btBroadphaseProxy* const* proxies, int count,
                                       btDispatcher* dispatcher) {
  struct Doomed : btOverlapCallback {
    bool processOverlap(btBroadphasePair& pair) override {
      return static_cast<GpuLbvhProxy*>(pair.m_pProxy0)->m_isDoomed ||
             static_cast<GpuLbvhProxy*>(pair.m_pProxy1)->m_isDoomed;
    }
  } doomed;
  if (m_impl->cache == &m_impl->ownCache) {  // goes through no other pairs
    for (int i = 0; i < count; ++i) destroyProxy(proxies[i], dispatcher);
    return;
  }
  for (int i = 0; i < count; ++i) static_cast<GpuLbvhProxy*>(proxies[i])->m_isDoomed = true;
  m_impl->cache->processAllOverlappingPairs(&doomed, dispatcher);
  for (int i = 0; i < count; ++i) m_impl->destroy(static_cast<GpuLbvhProxy*>(proxies[i]));
}

void GpuLbvhBroadphase::getAabb(btBroadphaseProxy* proxy, btVector3& aabbMin,
                                btVector3& aabbMax) const {
  aabbMin = proxy->m_aabbMin;
  aabbMax = proxy->m_aabbMax;
}

void GpuLbvhBroadphase::rayTest(const btVector3& rayFrom, const btVector3& /*rayTo*/,
                                btBroadphaseRayCallback& rayCallback, const btVector3& aabbMin,
                                const btVector3& aabbMax) {
  m_impl->queries.query(GpuLbvhRay(rayFrom, rayCallback, aabbMin, aabbMax),
                        [&](GpuLbvhProxy* proxy) { rayCallback.process(proxy); });
}

void GpuLbvhBroadphase::aabbTest(const btVector3& aabbMin, const btVector3& aabbMax,
                                 btBroadphaseAabbCallback& callback) {
  const GpuLbvhBox box(aabbMin, aabbMax);
  m_impl->queries.query([&](const auto& bounds) { return lbvh::overlap(box, bounds); },
                        [&](GpuLbvhProxy* proxy) { callback.process(proxy); });
}

void GpuLbvhBroadphase::calculateOverlappingPairs(btDispatcher* dispatcher) {
  BT_PROFILE("GpuLbvhBroadphase::calculateOverlappingPairs");
  Impl& impl = *m_impl;
  impl.error[0] = '\0';
  // With a filter callback group and mask do not decide; the cache asks the callback.
  const btOverlapFilterCallback* filter = impl.cache->getOverlapFilterCallback();
  if (!impl.update(filter == nullptr)) return;
  impl.remove(dispatcher);
  if (filter != std::exchange(impl.lastFilter, filter)) impl.mustRefilter = true;
  if (impl.mustRefilter) impl.removeRefused(dispatcher);
  if (!impl.mustRefilter && impl.isInStep)
    impl.offer(impl.exact.added());
  else
    impl.offerMissing();
  impl.mustRefilter = false;
  impl.ghosts.settle(impl.exact, *impl.cache, dispatcher);
}

bool GpuLbvhBroadphase::setPlane(btBroadphaseProxy* proxy, const btVector3& normal,
                                 btScalar constant) {
  try {
    m_impl->proxies.setPlane(static_cast<GpuLbvhProxy*>(proxy), normal, constant);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GpuLbvhBroadphase::clearPlane(btBroadphaseProxy* proxy) {
  m_impl->proxies.clearPlane(static_cast<GpuLbvhProxy*>(proxy));
}

void GpuLbvhBroadphase::refilter() { m_impl->mustRefilter = true; }

/// Its pairs are gone already.
void GpuLbvhBroadphase::Impl::destroy(GpuLbvhProxy* proxy) {
  ghosts.destroyed(proxy);
  finder.forget(proxy->m_slot);
  queries.changed(proxy);
  proxies.destroy(proxy);
}

bool GpuLbvhBroadphase::Impl::update(bool byGroup) {
  try {
    const auto filters = byGroup ? proxies.readFilters() : lbvh::View<const lbvh::Filter>{};
    if (!proxies.takeChanges() && byGroup == wasByGroup) {
      finder.updateUnchanged();
      exact.updateUnchanged();
      proxies.endStep();
      return true;
    }
    finder.update(proxies.boxes(), filters, proxies.changed());
    proxies.endStep();
    wasByGroup = byGroup;
    queries.stepIsDone();
    updateExact();
    return true;
  } catch (const std::exception& e) {
    std::snprintf(error, sizeof error, "%s", e.what());
    proxies.touch();  // so that the next step tries again
    queries.treeIsStale();
    return false;
  }
}

void GpuLbvhBroadphase::Impl::updateExact() {
  try {
    exact.update();
  } catch (const std::bad_alloc& e) {
    std::snprintf(error, sizeof error, "%s", e.what());
    isInStep = false;
    proxies.touch();
  }
}

void GpuLbvhBroadphase::Impl::offer(lbvh::View<const lbvh::Pair> pairs) {
  isInStep = false;  // should a callback of the cache throw
  if (cache == &ownCache) {
    try {
      ownCache.addAll(pairs);
    } catch (const std::bad_alloc& e) {
      std::snprintf(error, sizeof error, "%s", e.what());
      return;
    }
  } else {
    for (const lbvh::Pair pair : pairs)
      cache->addOverlappingPair(proxies.at(pair.first), proxies.at(pair.second));
  }
  isInStep = true;
}

std::vector<lbvh::Pair> GpuLbvhBroadphase::Impl::missingPairs() {
  std::vector<lbvh::Pair> there, overlapping, missing;
  const btBroadphasePairArray& array = cache->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) there.push_back(slots(array[i]));
  std::sort(there.begin(), there.end());
  const lbvh::View<const lbvh::Pair> all = finder.pairs(), refused = exact.refused();
  std::set_difference(all.begin(), all.end(), refused.begin(), refused.end(),
                      std::back_inserter(overlapping));
  std::set_difference(overlapping.begin(), overlapping.end(), there.begin(), there.end(),
                      std::back_inserter(missing));
  return missing;
}

void GpuLbvhBroadphase::Impl::offerMissing() {
  isInStep = false;  // until they were offered: the next step tries again
  std::vector<lbvh::Pair> missing;
  try {
    missing = missingPairs();
  } catch (const std::bad_alloc& e) {
    std::snprintf(error, sizeof error, "%s", e.what());
    return;
  }
  offer({missing.data(), missing.size()});
}

void GpuLbvhBroadphase::Impl::remove(btDispatcher* dispatcher) {
  if (cache == &ownCache) return ownCache.removeAll(exact.removed(), dispatcher);
  if (cache->hasDeferredRemoval()) return removeDeferred(dispatcher);
  for (const lbvh::Pair pair : exact.removed())
    cache->removeOverlappingPair(proxies.at(pair.first), proxies.at(pair.second), dispatcher);
}

// btSortedOverlappingPairCache removes nothing when asked to: its owner edits the array.
void GpuLbvhBroadphase::Impl::removeDeferred(btDispatcher* dispatcher) {
  const lbvh::View<const lbvh::Pair> removed = exact.removed();
  if (removed.empty()) return;
  btBroadphasePairArray& pairs = cache->getOverlappingPairArray();
  int kept = 0;
  for (int i = 0; i < pairs.size(); ++i) {
    if (std::binary_search(removed.begin(), removed.end(), slots(pairs[i])))
      cache->cleanOverlappingPair(pairs[i], dispatcher);
    else
      pairs[kept++] = pairs[i];
  }
  pairs.resize(kept);
}

void GpuLbvhBroadphase::Impl::removeRefused(btDispatcher* dispatcher) {
  struct Refused : btOverlapCallback {
    explicit Refused(const btOverlappingPairCache& c) : cache(c) {}
    bool processOverlap(btBroadphasePair& pair) override {
      return !cache.needsBroadphaseCollision(pair.m_pProxy0, pair.m_pProxy1);
    }
    const btOverlappingPairCache& cache;
  } refused(*cache);
  cache->processAllOverlappingPairs(&refused, dispatcher);
}

btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() { return m_impl->cache; }

const btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() const {
  return m_impl->cache;
}

void GpuLbvhBroadphase::getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const {
  bool any = false;
  for (std::uint32_t slot = 0; slot < m_impl->proxies.boxes().size; ++slot) {
    const GpuLbvhProxy* proxy = m_impl->proxies.at(slot);
    if (!proxy->m_isAlive) continue;
    if (any) {
      aabbMin.setMin(proxy->m_aabbMin);
      aabbMax.setMax(proxy->m_aabbMax);
    } else {
      aabbMin = proxy->m_aabbMin;
      aabbMax = proxy->m_aabbMax;
    }
    any = true;
  }
  if (!any) aabbMin = aabbMax = btVector3(0, 0, 0);
}

void GpuLbvhBroadphase::resetPool(btDispatcher* /*dispatcher*/) {
  if (m_impl->proxies.count() != 0) return;
  m_impl->proxies.reset();
  m_impl->queries.treeIsStale();
}

const lbvh::Stats& GpuLbvhBroadphase::stats() const { return m_impl->finder.stats(); }

const char* GpuLbvhBroadphase::error() const { return m_impl->error; }

void GpuLbvhBroadphase::printStats() {
  const lbvh::Stats& s = stats();
  const auto count = [](const char* name, std::size_t n) {
    std::printf("  %-22s %12zu\n", name, n);
  };
  const auto time = [](const char* name, double ms) {
    std::printf("  %-22s %12.3f ms\n", name, ms);
  };
  std::printf("GpuLbvhBroadphase on %s, %d thread(s) (%s)\n", s.backend.c_str(), s.threads,
              s.reason.c_str());
  count("proxies", m_impl->proxies.count());
  count("boxes searched", s.searched);
  count("pairs", s.pairs);
  count("pairs added", s.added);
  count("pairs removed", s.removed);
  count("pairs refused", m_impl->exact.refused().size);
  count("side list", s.sideBoxes);
  count("NaN boxes", s.nanBoxes);
  count("pair capacity", s.capacity);
  count("bytes held", s.memoryBytes);
  time("bounds", s.boundsMs);
  time("codes", s.codesMs);
  time("sort", s.sortMs);
  time("hierarchy", s.hierarchyMs);
  time("traversal", s.traversalMs);
  time("pair sort", s.pairSortMs);
  time("delta", s.deltaMs);
  time("all stages", s.totalMs);
  if (m_impl->error[0] != '\0') std::printf("  last step failed: %s\n", m_impl->error);
}
