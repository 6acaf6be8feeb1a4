// SPDX-License-Identifier: Zlib
#include "step.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

namespace {

std::vector<lbvh::Pair> difference(lbvh::View<const lbvh::Pair> a, lbvh::View<const lbvh::Pair> b) {
  std::vector<lbvh::Pair> rest;
  rest.reserve(a.size());
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

/// The error code for an exception of the finder.
GpuLbvhError codeOf(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return GpuLbvhError::outOfMemory;
  if (dynamic_cast<const std::length_error*>(&e) != nullptr) return GpuLbvhError::tooManyPairs;
  return GpuLbvhError::failed;
}

}  // namespace

void GpuLbvhStep::run(btDispatcher* dispatcher) {
  m_errorCode = GpuLbvhError::none;
  m_error[0] = '\0';
  m_sink.freeDeferredAlgorithms(dispatcher);
  const void* rule = m_sink.rule();
  if (!findPairs(rule == nullptr)) return;
  const std::size_t losses = lossesOf(m_finder);
  if (losses != std::exchange(m_losses, losses)) m_cacheHadAll = false;
  const bool isAnother = m_ghosts.beginStep(rule);
  if (rule != std::exchange(m_lastRule, rule) || isAnother) m_mustRefilter = true;
  const bool mustAskAll = std::exchange(m_mustRefilter, false);
  m_isRunning = true;
  try {
    passOn(mustAskAll, dispatcher);
  } catch (...) {  // from a callback; the next step does the rest
    m_isRunning = false;
    m_cacheHadAll = false;
    // The next step calls the filter for all pairs, because this step may not have confirmed all
    // pairs of ghosts. A cache with its own rule is asked again only after refilter().
    m_mustRefilter = m_mustRefilter || mustAskAll || !m_sink.hasOwnRule();
    throw;
  }
  m_isRunning = false;
}

bool GpuLbvhStep::mayRun(const char* call) {
  if (!m_isRunning && !m_queries.areRunning()) return true;
  assert(false && "GpuLbvhBroadphase: calculateOverlappingPairs or resetPool within a callback");
  m_errorCode = GpuLbvhError::withinCallback;
  std::snprintf(m_error, sizeof m_error, "%s within a callback does nothing", call);
  return false;
}

/// Returns false, with an error(), if the finder could not finish.
bool GpuLbvhStep::findPairs(bool byGroup) {
  try {
    m_proxies.giveBackSlots();
    const auto filters = byGroup ? readFilters() : lbvh::View<const lbvh::Filter>{};
    if (!m_mustFind && !m_proxies.anyChanged() && byGroup == m_wasByGroup) {
      m_finder.updateUnchanged();
      m_queries.keepLastStep();
      m_exact.updateUnchanged();
      m_proxies.endStep();
      return true;
    }
    updateChanged(m_finder, m_proxies.boxes(), filters, m_proxies.changed());
    m_mustFind = false;
    m_proxies.endStep();
    m_wasByGroup = byGroup;
    m_queries.useLastStep();
    m_proxies.giveBackMemory();
    decideExactly();
    return true;
  } catch (const std::exception& e) {
    fail(codeOf(e), e.what());
    m_mustFind = true;
    m_queries.invalidateScene();
    return false;
  }
}

lbvh::View<const lbvh::Filter> GpuLbvhStep::readFilters() {
  using Read = GpuLbvhProxies::Read;
  const bool mustReadAll = m_mustRefilter || !m_wasByGroup;
  return m_proxies.readFilters(mustReadAll ? Read::all : m_usualRead);
}

void GpuLbvhStep::decideExactly() {
  m_decides = m_proxies.mayLeavePairsUndecided() || !m_exact.rejected().empty();
  if (!m_decides) return;
  try {
    m_exact.update();
  } catch (const std::bad_alloc& e) {
    m_decides = false;
    fail(GpuLbvhError::outOfMemory, e.what());
    m_cacheHadAll = false;
    m_mustFind = true;
  }
}

/// Passes the step's changes to the cache, which may call callbacks.
void GpuLbvhStep::passOn(bool mustAskAll, btDispatcher* dispatcher) {
  const bool cacheHadAll = std::exchange(m_cacheHadAll, false);  // in case a callback throws
  try {
    GpuLbvhRefusedPairs& refused = m_sink.refusedPairs();
    refused.forget(removed());
    const bool offersAll = refused.takeLoss() || !cacheHadAll || mustAskAll;
    const lbvh::View<const lbvh::Pair> toOffer =
        offersAll ? lbvh::View<const lbvh::Pair>{} : refused.withMarked(added());
    m_proxies.clearToAsk();
    // From here on callbacks may change the broad phase.
    m_sink.remove(removed(), dispatcher);
    if (!cacheHadAll) removeStale(dispatcher);
    if (mustAskAll) removeRefused(dispatcher);
    offer(offersAll ? viewOf(missing()) : toOffer);
  } catch (const std::bad_alloc& e) {
    fail(GpuLbvhError::outOfMemory, e.what());
    m_mustRefilter = m_mustRefilter || mustAskAll;
  }
  m_sink.refusedPairs().applyNotes();
  m_ghosts.confirmPairs(m_exact, dispatcher);
  m_sink.refusedPairs().applyNotes();
  settleOrder();
}

void GpuLbvhStep::settleOrder() {
  try {
    m_sink.settleOrder();
  } catch (const std::bad_alloc& e) {
    fail(GpuLbvhError::outOfMemory, e.what());  // the next step sorts
  }
}

/// Removes from the cache all pairs that do not overlap. The cache has such pairs if the previous
/// step was interrupted, if the program added them, or if a GPU found them before it was lost.
void GpuLbvhStep::removeStale(btDispatcher* dispatcher) {
  m_sink.remove(viewOf(difference(viewOf(m_sink.pairs()), viewOf(overlapping()))), dispatcher);
}

void GpuLbvhStep::removeRefused(btDispatcher* dispatcher) {
  m_sink.remove(viewOf(m_sink.pairsToRefuse()), dispatcher);
}

void GpuLbvhStep::offer(lbvh::View<const lbvh::Pair> pairs) {
  if (m_sink.add(pairs))
    m_cacheHadAll = true;
  else
    fail(GpuLbvhError::foreignPairs,
         "the pair cache has pairs of another broad phase with the same unique ids");
}

/// The pairs of the step that the cache does not have.
std::vector<lbvh::Pair> GpuLbvhStep::missing() const {
  const std::vector<lbvh::Pair> there = m_sink.pairs();
  if (m_exact.rejected().empty()) return difference(m_finder.pairs(), viewOf(there));
  return difference(viewOf(overlapping()), viewOf(there));
}

/// All pairs of the step, including those that the filter callback refuses.
std::vector<lbvh::Pair> GpuLbvhStep::overlapping() const {
  return difference(m_finder.pairs(), m_exact.rejected());
}

void GpuLbvhStep::fail(GpuLbvhError code, const char* why) {
  m_errorCode = code;
  std::snprintf(m_error, sizeof m_error, "%s", why);
  // Warns, because few programs read error(), and objects without contacts fall through the floor.
  if (code != GpuLbvhError::tooManyPairs || std::exchange(m_hasWarned, true)) return;
  std::fprintf(stderr,
               "GpuLbvhBroadphase: %s. Until there are fewer, new contacts are missing. Look for "
               "objects that were all created in one place, or raise maxPairs\n",
               why);
}
