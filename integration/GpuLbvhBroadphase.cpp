// SPDX-License-Identifier: Zlib
#include "GpuLbvhBroadphase.h"

#include <LinearMath/btQuickprof.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

#include "box_test.h"
#include "broadphase/core/compiler.h"
#include "ghosts.h"
#include "pair_cache.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"
#include "ray.h"
#include "step.h"

namespace {

/// A finder on the requested backend, or on the best available one.
lbvh::PairFinder makeFinder(lbvh::Options options) {
  options.threads = std::max(options.threads, 0);
  if (!lbvh::whyUnavailable(options.backend, options.device).empty())
    options.backend = lbvh::Backend::automatic;
  GPULBVH_BEGIN_OLD_NAMES
  if (!lbvh::whyUnavailable(options.instructions).empty())
    options.instructions = lbvh::InstructionSet::automatic;
  GPULBVH_END_OLD_NAMES
  return lbvh::PairFinder(options);
}

std::unique_ptr<GpuLbvhPairSink> makeSink(GpuLbvhProxies& proxies, btOverlappingPairCache* handedIn,
                                          const GpuLbvhOptions& options) {
  if (handedIn == nullptr) return std::make_unique<GpuLbvhPairCache>(proxies, options.sortsPairs);
  return makeHandedInPairSink(proxies, *handedIn, options.cacheHasGhosts);
}

GpuLbvhProxies::Read readOf(const GpuLbvhOptions& options) {
  if (options.announcedFilters) return GpuLbvhProxies::Read::none;
  return options.readsAllFilters ? GpuLbvhProxies::Read::all : GpuLbvhProxies::Read::inTurn;
}

}  // namespace

struct GPULBVH_HIDDEN GpuLbvhBroadphase::Impl {
  Impl(const GpuLbvhOptions& options, btOverlappingPairCache* handedIn)
      : proxies(options.margin),
        finder(makeFinder(options)),
        queries(proxies, finder),
        sink(makeSink(proxies, handedIn, options)),
        ghosts(proxies, queries, *sink),
        step(proxies, finder, queries, *sink, ghosts, readOf(options)) {}

  /// Bullet sets every box in every step, so the common case of an unchanged box must be cheap.
  void setAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin, const btVector3& aabbMax) {
    if (!proxies.areExact() || ghosts.mayBeActive()) return setAnyAabb(proxy, aabbMin, aabbMax);
    const GpuLbvhCorners box(aabbMin, aabbMax);
    if (proxies.setExactAabb(proxy, box)) queries.markChanged(proxy);
  }
  /// The slow path of setAabb(), for a margin, double precision or ghost callbacks.
  GPULBVH_NOINLINE void setAnyAabb(GpuLbvhProxy* proxy, const btVector3& aabbMin,
                                   const btVector3& aabbMax) {
    if (isSameBox(GpuLbvhBox(proxy), GpuLbvhBox(aabbMin, aabbMax))) return;
    const bool areGhosts = ghosts.areActive();
    if (!proxies.setAabb(proxy, aabbMin, aabbMax)) return;
    queries.markChanged(proxy);
    if (areGhosts) ghosts.moveProxy(proxy);
  }

  void destroy(GpuLbvhProxy* proxy, btDispatcher* dispatcher) {
    // Removes the pairs now, because ghost callbacks read the client, and the caller may delete it
    // after this call.
    sink->removePairsOf(proxy, dispatcher);
    ghosts.removeProxy(proxy);
    sink->refusedPairs().forgetPairsOf(proxy);
    finder.replaceObject(proxy->m_slot);
    queries.markChanged(proxy);
    proxies.destroy(proxy);
  }

  GpuLbvhProxies proxies;
  lbvh::PairFinder finder;
  GpuLbvhQueries queries;
  const std::unique_ptr<GpuLbvhPairSink> sink;
  GpuLbvhGhosts ghosts;
  GpuLbvhStep step;
};

GpuLbvhBroadphase::GpuLbvhBroadphase(const GpuLbvhOptions& options,
                                     btOverlappingPairCache* pairCache)
    : m_impl(std::make_unique<Impl>(options, pairCache)) {}

GpuLbvhBroadphase::GpuLbvhBroadphase(btOverlappingPairCache* pairCache)
    : GpuLbvhBroadphase(GpuLbvhOptions(), pairCache) {}

GpuLbvhBroadphase::~GpuLbvhBroadphase() = default;

btBroadphaseProxy* GpuLbvhBroadphase::createProxy(const btVector3& aabbMin,
                                                  const btVector3& aabbMax, int /*shapeType*/,
                                                  void* userPtr, int collisionFilterGroup,
                                                  int collisionFilterMask,
                                                  btDispatcher* dispatcher) {
  try {
    GpuLbvhProxy* proxy = m_impl->proxies.create(aabbMin, aabbMax, userPtr, collisionFilterGroup,
                                                 collisionFilterMask);
    const std::uint32_t serial = proxy->m_serial;
    m_impl->queries.markChanged(proxy);
    try {
      m_impl->ghosts.addProxy(proxy);
    } catch (...) {  // thrown by a callback; the caller does not get the proxy
      if (proxy->m_serial == serial) m_impl->destroy(proxy, dispatcher);
      throw;
    }
    return proxy->m_serial == serial ? proxy : nullptr;  // a callback may have destroyed it
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhBroadphase: out of memory");
    return nullptr;
  }
}

bool GpuLbvhBroadphase::setNextUniqueId(int id) { return m_impl->proxies.setNextId(id); }

void GpuLbvhBroadphase::destroyProxy(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  m_impl->destroy(static_cast<GpuLbvhProxy*>(proxy), dispatcher);
}

void GpuLbvhBroadphase::setAabb(btBroadphaseProxy* proxy, const btVector3& aabbMin,
                                const btVector3& aabbMax, btDispatcher* /*dispatcher*/) {
  m_impl->setAabb(static_cast<GpuLbvhProxy*>(proxy), aabbMin, aabbMax);
}

bool GpuLbvhBroadphase::createProxies(const GpuLbvhNewProxy* objects, int count,
                                      btBroadphaseProxy** proxies, btDispatcher* dispatcher) {
  std::vector<std::uint32_t> serials;  // 0: not created
  try {
    serials.reserve(static_cast<std::size_t>(count));
    m_impl->proxies.reserve(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    return false;
  }
  try {
    for (int i = 0; i < count; ++i) {
      const GpuLbvhNewProxy& o = objects[i];
      proxies[i] =
          createProxy(o.aabbMin, o.aabbMax, o.shapeType, o.client, o.group, o.mask, dispatcher);
      const auto* created = static_cast<const GpuLbvhProxy*>(proxies[i]);
      serials.push_back(created != nullptr ? created->m_serial : 0);
    }
  } catch (...) {  // thrown by a callback, which may have destroyed some of the proxies
    for (std::size_t i = serials.size(); i-- > 0;)
      if (serials[i] != 0 && static_cast<const GpuLbvhProxy*>(proxies[i])->m_serial == serials[i])
        destroyProxy(proxies[i], dispatcher);
    throw;
  }
  return true;
}

void GpuLbvhBroadphase::setAabbs(btBroadphaseProxy* const* proxies, const btVector3* aabbMins,
                                 const btVector3* aabbMaxs, int count, btDispatcher* dispatcher) {
  for (int i = 0; i < count; ++i) setAabb(proxies[i], aabbMins[i], aabbMaxs[i], dispatcher);
}

void GpuLbvhBroadphase::destroyProxies(btBroadphaseProxy* const* proxies, int count,
                                       btDispatcher* dispatcher) {
  m_impl->sink->prepareRemovalOf(proxies, count, dispatcher);
  for (int i = 0; i < count; ++i) destroyProxy(proxies[i], dispatcher);
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
  m_impl->queries.query(GpuLbvhBoxTest(GpuLbvhBox(aabbMin, aabbMax)),
                        [&](GpuLbvhProxy* proxy) { callback.process(proxy); });
}

void GpuLbvhBroadphase::calculateOverlappingPairs(btDispatcher* dispatcher) {
  BT_PROFILE("GpuLbvhBroadphase::calculateOverlappingPairs");
  if (m_impl->step.mayRun("calculateOverlappingPairs")) m_impl->step.run(dispatcher);
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

void GpuLbvhBroadphase::filterChanged(btBroadphaseProxy* proxy) {
  m_impl->proxies.filterChanged(static_cast<GpuLbvhProxy*>(proxy));
}

void GpuLbvhBroadphase::refilter() { m_impl->step.refilter(); }

btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() {
  return &m_impl->sink->cache();
}

const btOverlappingPairCache* GpuLbvhBroadphase::getOverlappingPairCache() const {
  return &m_impl->sink->cache();
}

void GpuLbvhBroadphase::getBroadphaseAabb(btVector3& aabbMin, btVector3& aabbMax) const {
  bool any = false;
  for (std::uint32_t slot = 0; slot < m_impl->proxies.boxes().size(); ++slot) {
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
  if (m_impl->proxies.count() != 0 || !m_impl->step.mayRun("resetPool")) return;
  m_impl->proxies.reset();
  m_impl->ghosts.reset();
  m_impl->step.reset();
  m_impl->queries.invalidateScene();
}

const lbvh::Stats& GpuLbvhBroadphase::stats() const { return m_impl->finder.stats(); }

GpuLbvhError GpuLbvhBroadphase::errorCode() const { return m_impl->step.errorCode(); }

const char* GpuLbvhBroadphase::error() const { return m_impl->step.error(); }

void GpuLbvhBroadphase::printStats() {
  const lbvh::Stats& s = stats();
  m_impl->sink->refusedPairs().applyNotes();  // drops the pairs of destroyed proxies
  const auto count = [](const char* name, std::size_t n) {
    std::printf("  %-22s %12zu\n", name, n);
  };
  const auto time = [](const char* name, double ms) {
    std::printf("  %-22s %12.3f ms\n", name, ms);
  };
  const auto unknown = [](const char* name) { std::printf("  %-22s %12s\n", name, "-"); };
  std::printf("GpuLbvhBroadphase on %s, %d thread%s (%s)\n", s.backend.c_str(), s.threads,
              s.threads == 1 ? "" : "s", s.reason.c_str());
  if (error()[0] != '\0') std::printf("  last step failed: %s\n", error());
#if defined(GPULBVH_CHECKED)
  std::printf("  checked build: each step is checked, which is slow\n");
#endif
  std::printf("  %-22s %12s\n", "hierarchy",
              s.hierarchy == lbvh::Hierarchy::wide ? "wide" : "binary");
  count("proxies", m_impl->proxies.count());
  count("boxes searched", s.searched);
  count("pairs", s.pairs);
  count("pairs added", s.added);
  count("pairs removed", s.removed);
  count("pairs rejected", m_impl->step.rejected().size());
  count("pairs refused", m_impl->sink->refusedPairs().size());
  count("oversized boxes", s.oversizedBoxes);
  count("NaN boxes", s.nanBoxes);
  count("pair capacity", s.capacity);
  count("bytes held", s.memoryBytes);
  const bool isMeasured = std::any_of(std::begin(lbvh::kStages), std::end(lbvh::kStages),
                                      [&](const lbvh::Stage& stage) { return s.*stage.ms > 0; });
  for (const lbvh::Stage& stage : lbvh::kStages)
    isMeasured ? time(stage.name, s.*stage.ms) : unknown(stage.name);
  time("all stages", s.totalMs);
  if (s.hostMeanMs > 0 && s.gpuMeanMs > 0) {
    time("mean on the host", s.hostMeanMs);
    time("mean on the GPU", s.gpuMeanMs);
    count("moves between them", s.switches);
  }
}
