// SPDX-License-Identifier: Zlib
// Rejects those pairs of the finder that do not overlap exactly, and corrects the finder's lists of
// changes. The finder knows only boxes of floats, and no planes. Pairs that it cannot decide are
// decided here, in double precision or with a plane's equation. Filters are not applied. Not used
// if the finder can decide all pairs (single-precision Bullet without planes): then the finder's
// lists are exact. Not installed.
#pragma once

#include <vector>

#include "broadphase/pair_finder.h"
#include "proxies.h"

class GpuLbvhExactPairs {
 public:
  GpuLbvhExactPairs(const GpuLbvhProxies& proxies, lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// Call this after each update of the finder that changed something, if pairs may be undecided
  /// now or if the previous update rejected pairs.
  /// @throws std::bad_alloc; then all of the finder's pairs are treated as exact
  void update();

  /// Call this after each update of the finder in which nothing changed.
  void updateUnchanged() {
    m_added.clear();
    m_removed.clear();
  }

  /// Changes since the previous update, sorted. removed() may have pairs that were never added.
  lbvh::View<const lbvh::Pair> added() const { return viewOf(m_added); }
  lbvh::View<const lbvh::Pair> removed() const { return viewOf(m_removed); }

  /// Pairs of the finder that do not overlap exactly, sorted.
  lbvh::View<const lbvh::Pair> rejected() const { return viewOf(m_rejected); }
  bool isPair(lbvh::Pair pair) const;

 private:
  void compare();

  const GpuLbvhProxies& m_proxies;
  lbvh::PairFinder& m_finder;
  std::vector<lbvh::Pair> m_rejected, m_rejectedBefore;
  std::vector<lbvh::Pair> m_changed;  ///< scratch
  std::vector<lbvh::Pair> m_added, m_removed;
};
