// SPDX-License-Identifier: Zlib
#include "step.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

namespace {

std::vector<lbvh::Pair> difference(lbvh::View<const lbvh::Pair> a, lbvh::View<const lbvh::Pair> b) {
  std::vector<lbvh::Pair> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

lbvh::View<const lbvh::Pair> view(const std::vector<lbvh::Pair>& pairs) {
  return {pairs.data(), pairs.size()};
}

}  // namespace

void GpuLbvhStep::run(btDispatcher* dispatcher) {
  m_error[0] = '\0';
  // With a filter callback group and mask do not decide; the cache asks the callback.
  const btOverlapFilterCallback* filter = m_sink.cache().getOverlapFilterCallback();
  if (!findPairs(filter == nullptr)) return;
  const bool isAnother = m_ghosts.beginStep(filter);
  if (filter != std::exchange(m_lastFilter, filter) || isAnother) m_mustRefilter = true;
  m_isRunning = true;
  try {
    passOn(dispatcher);
  } catch (...) {  // by a callback: the next step makes up for the rest
    m_isRunning = false;
    m_mustRefilter = true;  // also for pairs of ghosts that this step has not confirmed
    throw;
  }
  m_isRunning = false;
}

bool GpuLbvhStep::mayRun(const char* call) {
  if (!m_isRunning && !m_queries.areRunning()) return true;
  assert(false && "GpuLbvhBroadphase: calculateOverlappingPairs or resetPool within a callback");
  std::snprintf(m_error, sizeof m_error, "%s within a callback does nothing", call);
  return false;
}

/// False, with an error(), if the finder could not finish.
bool GpuLbvhStep::findPairs(bool byGroup) {
  try {
    const auto filters = byGroup ? m_proxies.readFilters() : lbvh::View<const lbvh::Filter>{};
    if (!m_proxies.takeChanges() && byGroup == m_wasByGroup) {
      m_finder.updateUnchanged();
      m_queries.keepLastStep();
      m_exact.updateUnchanged();
      m_proxies.endStep();
      return true;
    }
    m_finder.update(m_proxies.boxes(), filters, m_proxies.changedBits());
    m_proxies.endStep();
    m_wasByGroup = byGroup;
    m_queries.useLastStep();
    decideExactly();
    return true;
  } catch (const std::exception& e) {
    fail(e.what());
    m_proxies.markChanged();  // so that the next step tries again
    m_queries.invalidateScene();
    return false;
  }
}

void GpuLbvhStep::decideExactly() {
  try {
    m_exact.update();
  } catch (const std::bad_alloc& e) {
    fail(e.what());
    m_cacheHadAll = false;
    m_proxies.markChanged();
  }
}

/// The step's pairs go to the cache, which may call back.
void GpuLbvhStep::passOn(btDispatcher* dispatcher) {
  const bool cacheHadAll = std::exchange(m_cacheHadAll, false);  // should a callback throw
  const bool mustAskAll = std::exchange(m_mustRefilter, false);
  try {
    GpuLbvhRefusedPairs& refused = m_sink.refusedPairs();
    const bool offersAll = refused.takeLoss() || !cacheHadAll || mustAskAll;
    refused.forget(m_exact.removed());
    const lbvh::View<const lbvh::Pair> toOffer = pairsToOffer();
    m_proxies.clearMarksToAsk();
    // From here on callbacks may change the broad phase.
    m_sink.remove(m_exact.removed(), dispatcher);
    if (!cacheHadAll) removeStale(dispatcher);
    if (mustAskAll) removeRefused(dispatcher);
    offer(offersAll ? view(difference(view(overlapping()), view(m_sink.pairs()))) : toOffer);
  } catch (const std::bad_alloc& e) {
    fail(e.what());
    m_mustRefilter = m_mustRefilter || mustAskAll;
  }
  m_ghosts.confirmPairs(m_exact, dispatcher);
}

/// Pairs that began to overlap, and those that are asked about again.
lbvh::View<const lbvh::Pair> GpuLbvhStep::pairsToOffer() {
  const lbvh::View<const lbvh::Pair> added = m_exact.added();
  const lbvh::View<const lbvh::Pair> again = m_sink.refusedPairs().findMarked();
  if (again.empty()) return added;
  m_toOffer.clear();
  std::set_union(added.begin(), added.end(), again.begin(), again.end(),
                 std::back_inserter(m_toOffer));
  return view(m_toOffer);
}

/// Removes what the cache kept because a step was broken off, or has from its user.
void GpuLbvhStep::removeStale(btDispatcher* dispatcher) {
  m_sink.remove(view(difference(view(m_sink.pairs()), view(overlapping()))), dispatcher);
}

void GpuLbvhStep::removeRefused(btDispatcher* dispatcher) {
  m_sink.remove(view(m_sink.pairsToRefuse()), dispatcher);
}

void GpuLbvhStep::offer(lbvh::View<const lbvh::Pair> pairs) {
  if (m_sink.add(pairs))
    m_cacheHadAll = true;
  else
    fail("the pair cache has pairs of another broad phase with the same unique ids");
}

/// All pairs of the step; the filter callback has not been asked.
std::vector<lbvh::Pair> GpuLbvhStep::overlapping() const {
  return difference(m_finder.pairs(), m_exact.rejected());
}

void GpuLbvhStep::fail(const char* why) { std::snprintf(m_error, sizeof m_error, "%s", why); }
