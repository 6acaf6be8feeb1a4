// From the finder's pairs to Bullet's: the finder knows boxes of floats, so what they leave open is
// decided here, with double precision or against a plane's equation. Filters are not asked. Where
// nothing is open (Bullet with single precision, no planes) the finder's lists pass through.
// Not installed.
#pragma once

#include <vector>

#include "broadphase/pair_finder.h"
#include "proxies.h"

class GpuLbvhExactPairs {
 public:
  GpuLbvhExactPairs(const GpuLbvhProxies& proxies, const lbvh::PairFinder& finder)
      : m_proxies(proxies), m_finder(finder) {}

  /// After each update of the finder. @throws std::bad_alloc: then all of the finder's pairs count
  /// as pairs, and added() does not have those that did not before
  void update();

  /// After an update of the finder in which nothing changed.
  void updateUnchanged();

  /// The difference to the update before, sorted; removed() may have pairs that never were.
  lbvh::View<const lbvh::Pair> added() const;
  lbvh::View<const lbvh::Pair> removed() const;

  /// Pairs of the finder that are none, sorted.
  lbvh::View<const lbvh::Pair> refused() const { return view(m_refused); }
  bool isPair(lbvh::Pair pair) const;

 private:
  static lbvh::View<const lbvh::Pair> view(const std::vector<lbvh::Pair>& pairs) {
    return {pairs.data(), pairs.size()};
  }
  void compare();

  const GpuLbvhProxies& m_proxies;
  const lbvh::PairFinder& m_finder;
  std::vector<lbvh::Pair> m_refused, m_refusedBefore;
  std::vector<lbvh::Pair> m_changed;  // scratch
  std::vector<lbvh::Pair> m_added, m_removed;
  bool m_passesThrough = true;
};
