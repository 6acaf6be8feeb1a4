// SPDX-License-Identifier: Zlib
// Remembers the overlapping pairs that the pair cache, or its filter callback, has refused. Tells
// the step which of them to offer again. Pairs are identified by slot. Does not call the filter.
// Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pair_index.h"
#include "partners.h"
#include "proxies.h"

class GpuLbvhRefusedPairs {
 public:
  explicit GpuLbvhRefusedPairs(const GpuLbvhProxies& proxies) : m_proxies(proxies) {}

  std::size_t size() const { return m_pairs.size(); }

  bool contains(lbvh::Pair pair) const { return m_pairs.find(pair) != lbvh::kNullIndex; }

  /// Notes whether an overlapping pair was refused or is in the cache now.
  void note(lbvh::Pair pair, bool isRefused) noexcept {
    if (isRefused)
      add(pair);
    else
      forget(pair);
  }

  /// Forgets pairs that no longer overlap.
  void forget(lbvh::View<const lbvh::Pair> gone) {
    for (std::size_t i = 0; i < gone.size && size() > 0; ++i) forget(gone[i]);
  }
  /// Forgets the pairs of a proxy that is about to be destroyed. The time is proportional to their
  /// number. After many additions the next call first lists all pairs.
  void forgetPairsOf(const GpuLbvhProxy* proxy) noexcept;

  /// Whether refused pairs were lost since the last call, because memory ran out.
  bool takeLoss() { return std::exchange(m_hasLost, false); }

  /// The refused pairs with a marked proxy (GpuLbvhProxies::askAgain), sorted. Valid until the next
  /// call.
  /// @throws std::bad_alloc
  lbvh::View<const lbvh::Pair> findMarked();

 private:
  void add(lbvh::Pair pair) noexcept;
  void forget(lbvh::Pair pair) noexcept {
    if (size() == 0) return;
    std::uint32_t& link = m_pairs.linkTo(pair);
    if (link != lbvh::kNullIndex) m_pairs.takeOut(link);
  }
  void listPartners();
  void findPairsOf(std::uint32_t slot);

  const GpuLbvhProxies& m_proxies;
  GpuLbvhPairIndex m_pairs;
  GpuLbvhPartners m_partners;                  ///< the partners of each proxy in m_pairs
  std::vector<lbvh::Pair> m_marked, m_behind;  ///< scratch
  bool m_hasLost = false;
};
