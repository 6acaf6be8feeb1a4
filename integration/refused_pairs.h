// SPDX-License-Identifier: Zlib
// Remembers the overlapping pairs that the pair cache, or its filter callback, has refused. Tells
// the step which of them to offer again. Each proxy with refused pairs has a row: the slots of its
// partners, sorted. So a step visits only the rows of proxies that have changed. Does not call the
// filter. Not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "proxies.h"

class GpuLbvhRefusedPairs {
 public:
  explicit GpuLbvhRefusedPairs(GpuLbvhProxies& proxies) : m_proxies(proxies) {}

  /// Number of pairs.
  std::size_t size() const { return m_entries / 2; }
  bool contains(lbvh::Pair pair) const { return m_entries != 0 && find(pair); }

  /// Notes whether an overlapping pair was refused or is in the cache now. A note affects
  /// size() and contains() only after applyNotes(). Before that call, pairs must be noted in
  /// ascending order, each only once. After withMarked(), only pairs of its result may be noted.
  void note(lbvh::Pair pair, bool isRefused) noexcept {
    if (wasRefused(pair) != isRefused) noteChange(pair, isRefused);
  }
  void applyNotes() noexcept {
    m_isOffering = false;
    if (!m_ended.empty() || !m_accepted.empty() || !m_refused.empty()) applyAnyNotes();
  }

  /// Forgets pairs that no longer overlap.
  void forget(lbvh::View<const lbvh::Pair> gone) noexcept;
  /// Forgets the pairs of a proxy that is about to be destroyed.
  void forgetPairsOf(const GpuLbvhProxy* proxy) noexcept;

  /// Whether refused pairs were lost since the last call, because memory ran out.
  bool takeLoss() { return std::exchange(m_hasLost, false); }

  /// The pairs of `added`, and the refused pairs with a marked proxy (GpuLbvhProxies::askAgain).
  /// `added` and the result are sorted. Requires that no refused pair is in `added`. Valid until
  /// the next call.
  /// @throws std::bad_alloc
  lbvh::View<const lbvh::Pair> withMarked(lbvh::View<const lbvh::Pair> added);

 private:
  using Row = std::vector<std::uint32_t>;
  using Page = std::array<Row, 64>;

  bool find(lbvh::Pair pair) const;
  /// Like contains(), but faster for the pairs that withMarked() returned.
  bool wasRefused(lbvh::Pair pair) {
    if (!m_isOffering) return contains(pair);
    while (m_added.size() != 0 && m_added[0] < pair)
      m_added = {m_added.data() + 1, m_added.size() - 1};
    return m_added.size() == 0 || m_added[0] != pair;
  }
  void noteChange(lbvh::Pair pair, bool isRefused) noexcept;
  void applyAnyNotes() noexcept;
  Row* rowOf(std::uint32_t slot) const {
    const std::size_t page = slot / 64;
    return page < m_pages.size() && m_pages[page] ? &(*m_pages[page])[slot % 64] : nullptr;
  }
  Row& makeRowOf(std::uint32_t slot);
  void insert(const std::vector<lbvh::Pair>& entries);
  void erase(const std::vector<lbvh::Pair>& entries);
  template <class Visit>
  void forEachMarked(const Visit& visit) const;
  void lose();

  GpuLbvhProxies& m_proxies;
  std::vector<std::unique_ptr<Page>> m_pages;     ///< null: no proxy of the page has refused pairs
  std::size_t m_entries = 0;                      ///< in all rows; each pair has two
  std::vector<lbvh::Pair> m_refused, m_accepted;  ///< notes that are not yet applied
  /// Entries (slot, partner) to erase, because the partner was destroyed.
  std::vector<lbvh::Pair> m_ended;
  std::vector<lbvh::Pair> m_behind, m_toOffer;  ///< scratch and result of withMarked()
  lbvh::View<const lbvh::Pair> m_added;         ///< the rest of withMarked()'s `added`
  bool m_isOffering = false;                    ///< from withMarked() until applyNotes()
  bool m_hasLost = false;
};
