#include "GpuLbvhBroadphase.h"

#include <LinearMath/btQuickprof.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "exact_pairs.h"
#include "ghosts.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"

namespace {

/// The finder that was asked for, or the best this machine has; its stats say why.
lbvh::PairFinder makeFinder(lbvh::Options options) {
  options.threads = std::max(options.threads, 0);
  if (!lbvh::whyUnavailable(options.backend).empty()) options.backend = lbvh::Backend::automatic;
  return lbvh::PairFinder(options);
}

std::vector<lbvh::Pair> difference(const std::vector<lbvh::Pair>& a,
                                   const std::vector<lbvh::Pair>& b) {
  std::vector<lbvh::Pair> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

GpuLbvhOptions withGhosts() {
  GpuLbvhOptions options;
  options.cacheHasGhosts = true;
  return options;
}

}  // namespace

struct GpuLbvhBroadphase::Impl {
  Impl(const GpuLbvhOptions& givenOptions, btOverlappingPairCache* handedIn)
      : options(givenOptions),
        proxies(options.margin),
        finder(makeFinder(options)),
        exact(proxies, finder),
        queries(proxies, finder),
        sink(proxies, handedIn),
        ghosts(proxies, queries, sink) {}

  GpuLbvhGhosts& ghostsNow() {
    ghosts.setCallbackIsThere(sink.isOwn() ? sink.hasGhostPairCallback() : options.cacheHasGhosts);
    return ghosts;
  }

  /// False, in debug builds with an assertion, within a callback of a step or a query.
  bool mayStep(const char* call);

  void destroy(GpuLbvhProxy* proxy);
  /// False, with the reason in `error`, if the step could not be finished.
  bool update(bool byGroup);
  void updateExact();
  /// The step's pairs into the cache, which may call back.
  void pass(btDispatcher* dispatcher);
  void removeRefused(btDispatcher* dispatcher);
  void offer(lbvh::View<const lbvh::Pair> pairs);
  void removeStale(btDispatcher* dispatcher);
  std::vector<lbvh::Pair> overlapping();
  void fail(const char* why) { std::snprintf(error, sizeof error, "%s", why); }

  const GpuLbvhOptions options;
  GpuLbvhProxies proxies;
  lbvh::PairFinder finder;
  GpuLbvhExactPairs exact;
  GpuLbvhQueries queries;
  GpuLbvhPairSink sink;
  GpuLbvhGhosts ghosts;
  const btOverlapFilterCallback* lastFilter = nullptr;  ///< of the last step
  bool mustRefilter = false;                            ///< ask for every pair anew
  bool wasByGroup = true;                               ///< of the last step that was finished
  bool isInStep = true;     ///< the cache was offered every pair of the finder
  bool isStepping = false;  ///< and calls what calls here are a callback's
  char error[200] = "";     ///< fixed: it is written when there may be no memory
};

GpuLbvhBroadphase::GpuLbvhBroadphase(const GpuLbvhOptions& options,
                                     btOverlappingPairCache* pairCache)
    : m_impl(std::make_unique<Impl>(options, pairCache)) {}

GpuLbvhBroadphase::GpuLbvhBroadphase(btOverlappingPairCache* pairCache)
    : GpuLbvhBroadphase(withGhosts(), pairCache) {}

GpuLbvhBroadphase::~GpuLbvhBroadphase() = default;

btBroadphaseProxy* GpuLbvhBroadphase::createProxy(const btVector3& aabbMin,
                                                  const btVector3& aabbMax, int /*shapeType*/,
                                                  void* userPtr, int collisionFilterGroup,
                                                  int collisionFilterMask,
                                                  btDispatcher* /*dispatcher*/) {
  try {
    GpuLbvhProxy* proxy = m_impl->proxies.create(aabbMin, aabbMax, userPtr, collisionFilterGroup,
                                                 collisionFilterMask);
    const GpuLbvhObjects created(proxy);
    m_impl->queries.changed(proxy);
    m_impl->ghostsNow().created(proxy);
    return created.areAlive() ? proxy : nullptr;  // a filter callback may have destroyed it
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhBroadphase: out of memory");
    return nullptr;
  }
}

void GpuLbvhBroadphase::destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  auto* own = static_cast<GpuLbvhProxy*>(proxy);
  // Now, not later: a ghost callback reads the client, which the caller deletes next.
  m_impl->sink.cache().removeOverlappingPairsContainingProxy(own, dispatcher);
  m_impl->destroy(own);
}

void GpuLbvhBroadphase::setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                                const btVector3& aabbMax, btDispatcher* dispatcher) {
  auto* own = static_cast<GpuLbvhProxy*>(proxy);
  const lbvh::Aabb before = m_impl->proxies.boxes()[own->m_slot];
  if (!m_impl->proxies.setAabb(own, aabbMin, aabbMax)) return;
  m_impl->queries.changed(own);
  m_impl->ghostsNow().moved(own, before, dispatcher);
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
  if (m_impl->sink.isOwn()) {  // goes through no other pairs
    for (int i = 0; i < count; ++i) destroyProxy(proxies[i], dispatcher);
    return;
  }
  for (int i = 0; i < count; ++i) static_cast<GpuLbvhProxy*>(proxies[i])->m_isDoomed = true;
  m_impl->sink.removeDoomed(dispatcher);
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
  if (!impl.mayStep("calculateOverlappingPairs")) return;
  impl.error[0] = '\0';
  // With a filter callback group and mask do not decide; the cache asks the callback.
  const btOverlapFilterCallback* filter = impl.sink.cache().getOverlapFilterCallback();
  if (!impl.update(filter == nullptr)) return;
  if (filter != std::exchange(impl.lastFilter, filter)) impl.mustRefilter = true;
  impl.ghosts.beginStep();
  impl.isStepping = true;
  try {
    impl.pass(dispatcher);
  } catch (...) {  // of a callback's own: the next step makes up for the rest
    impl.isStepping = false;
    impl.mustRefilter = true;  // also for the early pairs of ghosts, which were not settled
    throw;
  }
  impl.isStepping = false;
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
  finder.removeObject(proxy->m_slot);
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
    fail(e.what());
    proxies.touch();  // so that the next step tries again
    queries.treeIsStale();
    return false;
  }
}

void GpuLbvhBroadphase::Impl::updateExact() {
  try {
    exact.update();
  } catch (const std::bad_alloc& e) {
    fail(e.what());
    isInStep = false;
    proxies.touch();
  }
}

bool GpuLbvhBroadphase::Impl::mayStep(const char* call) {
  if (!isStepping && !queries.areRunning()) return true;
  assert(false && "GpuLbvhBroadphase: calculateOverlappingPairs or resetPool within a callback");
  std::snprintf(error, sizeof error, "%s within a callback does nothing", call);
  return false;
}

void GpuLbvhBroadphase::Impl::pass(btDispatcher* dispatcher) {
  const bool hadAll = std::exchange(isInStep, false);  // should a callback throw
  const bool mustAskAll = std::exchange(mustRefilter, false);
  try {
    sink.remove(exact.removed(), dispatcher);
    if (!hadAll) removeStale(dispatcher);
    if (mustAskAll) removeRefused(dispatcher);
    if (hadAll && !mustAskAll) {
      offer(exact.added());
    } else {
      const std::vector<lbvh::Pair> missing = difference(overlapping(), sink.pairs());
      offer({missing.data(), missing.size()});
    }
  } catch (const std::bad_alloc& e) {
    fail(e.what());
    mustRefilter = mustRefilter || mustAskAll;
  }
  ghosts.settle(exact, dispatcher);
}

/// What the cache kept because a step was broken off, or has from its user.
void GpuLbvhBroadphase::Impl::removeStale(btDispatcher* dispatcher) {
  const std::vector<lbvh::Pair> stale = difference(sink.pairs(), overlapping());
  sink.remove({stale.data(), stale.size()}, dispatcher);
}

void GpuLbvhBroadphase::Impl::removeRefused(btDispatcher* dispatcher) {
  const std::vector<lbvh::Pair> refused = sink.refused();
  sink.remove({refused.data(), refused.size()}, dispatcher);
}

void GpuLbvhBroadphase::Impl::offer(lbvh::View<const lbvh::Pair> pairs) {
  if (sink.add(pairs))
    isInStep = true;
  else
    fail("the pair cache has pairs of another broad phase with the same unique ids");
}

/// All pairs of the step, filter callbacks aside.
std::vector<lbvh::Pair> GpuLbvhBroadphase::Impl::overlapping() {
  const lbvh::View<const lbvh::Pair> found = finder.pairs(), refused = exact.refused();
  std::vector<lbvh::Pair> pairs;
  std::set_difference(found.begin(), found.end(), refused.begin(), refused.end(),
                      std::back_inserter(pairs));
  return pairs;
}

btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() {
  return &m_impl->sink.cache();
}

const btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() const {
  return &m_impl->sink.cache();
}

void GpuLbvhBroadphase::getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const {
  bool any = false;
  for (std::uint32_t slot = 0; slot < m_impl->proxies.boxes().size; ++slot) {
    const GpuLbvhProxy* proxy = m_impl->proxies.at(slot);
    if (!proxy->isAlive()) continue;
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
  if (m_impl->proxies.count() != 0 || !m_impl->mayStep("resetPool")) return;
  m_impl->proxies.reset();
  m_impl->ghosts.reset();
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
  count("oversized boxes", s.oversizedBoxes);
  count("NaN boxes", s.nanBoxes);
  count("pair capacity", s.capacity);
  count("bytes held", s.memoryBytes);
  for (const lbvh::Stage& stage : lbvh::kStages) time(stage.name, s.*stage.ms);
  time("all stages", s.totalMs);
  if (m_impl->error[0] != '\0') std::printf("  last step failed: %s\n", m_impl->error);
}
