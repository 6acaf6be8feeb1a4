// SPDX-License-Identifier: Zlib
// Runs one step of the broad phase: from the current boxes to the pairs in the cache. Remembers
// which rule the last step used, and what that step could not finish. Not installed.
#pragma once

#include <vector>

#include "GpuLbvhBroadphase.h"
#include "broadphase/pair_finder.h"
#include "exact_pairs.h"
#include "ghosts.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"

class btDispatcher;

class GpuLbvhStep {
 public:
  GpuLbvhStep(GpuLbvhProxies& proxies, lbvh::PairFinder& finder, GpuLbvhQueries& queries,
              GpuLbvhPairSink& sink, GpuLbvhGhosts& ghosts, GpuLbvhProxies::Read usualRead)
      : m_proxies(proxies),
        m_finder(finder),
        m_queries(queries),
        m_sink(sink),
        m_ghosts(ghosts),
        m_exact(proxies, finder),
        m_usualRead(usualRead),
        m_lastRule(sink.rule()) {}

  /// Throws only what a callback throws. Any other failure is in error().
  void run(btDispatcher* dispatcher);

  /// Whether `call` may run. Within a callback of a step or a query it may not. Then error() says
  /// so, and in debug builds an assertion fails.
  /// @param call name of the program's call, for error()
  bool mayRun(const char* call);

  /// Call this when there are no proxies and slot numbers restart at 0.
  void reset() { m_mustFind = true; }

  /// Makes the next step call the filter for every pair.
  void refilter() { m_mustRefilter = true; }

  /// Why the last step could not be finished, as a code and as text. The text is empty if the step
  /// was finished.
  GpuLbvhError errorCode() const { return m_errorCode; }
  const char* error() const { return m_error; }

  /// Pairs of the finder's last step whose exact boxes are apart.
  lbvh::View<const lbvh::Pair> rejected() const { return m_exact.rejected(); }

 private:
  bool findPairs(bool byGroup);
  lbvh::View<const lbvh::Filter> readFilters();
  void decideExactly();
  lbvh::View<const lbvh::Pair> added() const {
    return m_decides ? m_exact.added() : m_finder.added();
  }
  lbvh::View<const lbvh::Pair> removed() const {
    return m_decides ? m_exact.removed() : m_finder.removed();
  }
  void passOn(bool mustAskAll, btDispatcher* dispatcher);
  void removeStale(btDispatcher* dispatcher);
  void removeRefused(btDispatcher* dispatcher);
  void offer(lbvh::View<const lbvh::Pair> pairs);
  void settleOrder();
  std::vector<lbvh::Pair> missing() const;
  std::vector<lbvh::Pair> overlapping() const;
  void fail(GpuLbvhError code, const char* why);

  GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  GpuLbvhQueries& m_queries;
  GpuLbvhPairSink& m_sink;
  GpuLbvhGhosts& m_ghosts;
  GpuLbvhExactPairs m_exact;

  const GpuLbvhProxies::Read m_usualRead;
  const void* m_lastRule;       ///< GpuLbvhPairSink::rule() of the last step
  bool m_mustFind = true;       ///< search even if nothing has changed since the last step
  bool m_decides = false;       ///< m_exact has the last step's changes, not m_finder
  bool m_wasByGroup = true;     ///< the finder's last step used groups and masks
  bool m_mustRefilter = false;  ///< the next step must call the filter for every pair
  bool m_cacheHadAll = true;    ///< the cache was offered every pair of the last step
  std::size_t m_losses = 0;     ///< lossesOf(m_finder) after the last step
  bool m_isRunning = false;     ///< a step is running, so a call comes from one of its callbacks
  bool m_hasWarned = false;     ///< the message about maxPairs was printed
  GpuLbvhError m_errorCode = GpuLbvhError::none;
  char m_error[200] = "";  ///< of fixed size, because there may be no memory when it is written
};
