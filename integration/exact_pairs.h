// SPDX-License-Identifier: Zlib
// From the finder's pairs to Bullet's. The finder knows boxes of floats and no planes; the pairs
// that this leaves undecided are decided here, with double precision or by a plane's equation.
// Filters are not asked. Where nothing is undecided (Bullet with single precision, no planes) the
// finder's lists pass through. Not installed.
#pragma once

#include <vector>

#include "broadphase/pair_finder.h"
#include "proxies.h"

class GpuLbvhExactPairs {
 public:
  GpuLbvhExactPairs(const GpuLbvhProxies& proxies, const lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// To be called after each update of the finder that changed something.
  /// @throws std::bad_alloc; then all of the finder's pairs count as pairs, and added() lacks those
  ///   of them that were rejected before
  void update();

  /// To be called after each update of the finder in which nothing changed.
  void updateUnchanged();

  /// The difference to the update before, sorted. removed() may have pairs that were never added.
  lbvh::View<const lbvh::Pair> added() const;
  lbvh::View<const lbvh::Pair> removed() const;

  /// Pairs of the finder that are no pairs of Bullet's, sorted.
  lbvh::View<const lbvh::Pair> rejected() const { return view(m_rejected); }
  bool isPair(lbvh::Pair pair) const;

 private:
  static lbvh::View<const lbvh::Pair> view(const std::vector<lbvh::Pair>& pairs) {
    return {pairs.data(), pairs.size()};
  }
  void compare();

  const GpuLbvhProxies& m_proxies;
  const lbvh::PairFinder& m_finder;
  std::vector<lbvh::Pair> m_rejected, m_rejectedBefore;
  std::vector<lbvh::Pair> m_changed;  ///< scratch
  std::vector<lbvh::Pair> m_added, m_removed;
  bool m_passesThrough = true;
};
