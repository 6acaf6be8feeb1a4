// SPDX-License-Identifier: Zlib
// One step of the broad phase: from the boxes as they are to the pairs in the cache. Remembers what
// a step must know of those before it: which filter they asked, and what they could not finish.
// Not installed.
#pragma once

#include <vector>

#include "broadphase/pair_finder.h"
#include "exact_pairs.h"
#include "ghosts.h"
#include "pair_sink.h"
#include "proxies.h"
#include "queries.h"

class btDispatcher;
class btOverlapFilterCallback;

class GpuLbvhStep {
 public:
  GpuLbvhStep(GpuLbvhProxies& proxies, lbvh::PairFinder& finder, GpuLbvhQueries& queries,
              GpuLbvhPairSink& sink, GpuLbvhGhosts& ghosts)
      : m_proxies(proxies),
        m_finder(finder),
        m_queries(queries),
        m_sink(sink),
        m_ghosts(ghosts),
        m_exact(proxies, finder) {}

  /// Throws only what a callback throws. Else error() says what could not be done.
  void run(btDispatcher* dispatcher);

  /// False, with an error(), within a callback of a step or a query; in debug builds an assertion
  /// fails. @param call what the user has called
  bool mayRun(const char* call);

  /// The next step asks the filter for every pair.
  void refilter() { m_mustRefilter = true; }

  /// Why the last step could not be finished; empty if it was.
  const char* error() const { return m_error; }

  /// Pairs of the finder's last step that are no pairs of Bullet's.
  lbvh::View<const lbvh::Pair> rejected() const { return m_exact.rejected(); }

 private:
  bool findPairs(bool byGroup);
  void decideExactly();
  void passOn(btDispatcher* dispatcher);
  lbvh::View<const lbvh::Pair> pairsToOffer();
  void removeStale(btDispatcher* dispatcher);
  void removeRefused(btDispatcher* dispatcher);
  void offer(lbvh::View<const lbvh::Pair> pairs);
  std::vector<lbvh::Pair> overlapping() const;
  void fail(const char* why);

  GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  GpuLbvhQueries& m_queries;
  GpuLbvhPairSink& m_sink;
  GpuLbvhGhosts& m_ghosts;
  GpuLbvhExactPairs m_exact;
  std::vector<lbvh::Pair> m_toOffer;

  const btOverlapFilterCallback* m_lastFilter = nullptr;  ///< of the last step
  bool m_wasByGroup = true;     ///< the finder's last step went by group and mask
  bool m_mustRefilter = false;  ///< the filter must be asked for every pair
  bool m_cacheHadAll = true;    ///< the cache was offered every pair of the last step
  bool m_isRunning = false;     ///< so that whoever calls is a callback
  char m_error[200] = "";       ///< of fixed size: it is written when there may be no memory
};
