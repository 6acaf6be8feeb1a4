// SPDX-License-Identifier: Zlib
#include "refused_pairs.h"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

namespace {

using Row = std::vector<std::uint32_t>;

/// Makes the vectors empty, and frees their memory.
template <class... T>
void release(std::vector<T>&... vectors) {
  (std::vector<T>().swap(vectors), ...);
}

/// Inserts the second slot of each pair. Works from the end, so that each entry moves only once.
void insertInto(Row& row, lbvh::View<const lbvh::Pair> sorted) {
  const std::size_t size = row.size() + sorted.size();
  if (size > row.capacity()) row.reserve(size + size / 4 + 2);
  auto read = row.end() - row.begin();
  row.resize(size);
  auto write = row.end();
  for (std::size_t i = sorted.size(); i-- > 0;) {
    const std::uint32_t partner = sorted[i].second;
    const auto after = std::lower_bound(row.begin(), row.begin() + read, partner);
    write = std::move_backward(after, row.begin() + read, write);
    *--write = partner;
    read = after - row.begin();
  }
}

/// Erases the second slot of each pair. Slots that the row does not have are skipped.
void eraseFrom(Row& row, lbvh::View<const lbvh::Pair> sorted) {
  auto read = row.begin(), write = row.begin();
  for (const lbvh::Pair pair : sorted) {
    const auto found = std::lower_bound(read, row.end(), pair.second);
    write = write == read ? found : std::move(read, found, write);
    read = found + (found != row.end() && *found == pair.second);
  }
  row.erase(write, read);
  if (row.capacity() > 2 * row.size() + 16) row.shrink_to_fit();
}

/// Sorts pairs that are already sorted by their second slots: a radix sort by the first slots.
void sortByFirst(std::vector<lbvh::Pair>& pairs) {
  constexpr std::uint32_t kDigits = 2048, kBits = 11;
  if (pairs.size() < kDigits) return std::sort(pairs.begin(), pairs.end());
  std::uint32_t slots = 0;
  for (const lbvh::Pair pair : pairs) slots |= pair.first;
  std::vector<lbvh::Pair> sorted(pairs.size());
  for (std::uint32_t shift = 0; slots >> shift != 0; shift += kBits) {
    const auto digitOf = [shift](lbvh::Pair pair) { return (pair.first >> shift) % kDigits; };
    std::array<std::size_t, kDigits> places{};
    for (const lbvh::Pair pair : pairs) ++places[digitOf(pair)];
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::size_t{0});
    for (const lbvh::Pair pair : pairs) sorted[places[digitOf(pair)]++] = pair;
    pairs.swap(sorted);
  }
}

/// Calls edit(slot, pairs) for the pairs of each first slot.
template <class Edit>
void forEachFirst(const std::vector<lbvh::Pair>& pairs, const Edit& edit) {
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    const std::uint32_t slot = pairs[begin].first;
    while (end < pairs.size() && pairs[end].first == slot) ++end;
    edit(slot, lbvh::View<const lbvh::Pair>{&pairs[begin], end - begin});
  }
}

/// Calls edit(pairs) for sorted pairs, and again with the slots of each pair swapped.
template <class Edit>
void inBothOrders(std::vector<lbvh::Pair>& pairs, const Edit& edit) {
  edit(pairs);
  for (lbvh::Pair& pair : pairs) std::swap(pair.first, pair.second);
  sortByFirst(pairs);
  edit(pairs);
}

}  // namespace

bool GpuLbvhRefusedPairs::find(lbvh::Pair pair) const {
  const Row* row = rowOf(pair.first);
  return row != nullptr && std::binary_search(row->begin(), row->end(), pair.second);
}

// The step may have used an old group or mask of a resting object, while the cache has read the
// current one. If they differ, the object counts as changed in the next step, even if it has its
// old group and mask again by then.
void GpuLbvhRefusedPairs::noteChange(lbvh::Pair pair, bool isRefused) noexcept {
  if (isRefused)
    for (const std::uint32_t slot : {pair.first, pair.second})
      m_proxies.filterChanged(m_proxies.at(slot));
  try {
    (isRefused ? m_refused : m_accepted).push_back(pair);
  } catch (const std::bad_alloc&) {
    lose();
  }
}

void GpuLbvhRefusedPairs::applyAnyNotes() noexcept {
  try {
    std::sort(m_ended.begin(), m_ended.end());
    erase(m_ended);
    inBothOrders(m_accepted, [this](const auto& pairs) { erase(pairs); });
    inBothOrders(m_refused, [this](const auto& pairs) { insert(pairs); });
  } catch (const std::bad_alloc&) {
    return lose();
  }
  // Otherwise these vectors would keep as much memory as the largest step needed.
  release(m_ended, m_accepted, m_refused);
  if (m_entries == 0) release(m_pages);
}

/// @throws std::bad_alloc
GpuLbvhRefusedPairs::Row& GpuLbvhRefusedPairs::makeRowOf(std::uint32_t slot) {
  const std::size_t page = slot / 64;
  if (page >= m_pages.size()) m_pages.resize(page + 1);
  if (!m_pages[page]) m_pages[page] = std::make_unique<Page>();
  return *rowOf(slot);
}

/// @param entries (slot, partner), sorted. @throws std::bad_alloc
void GpuLbvhRefusedPairs::insert(const std::vector<lbvh::Pair>& entries) {
  forEachFirst(entries, [this](std::uint32_t slot, lbvh::View<const lbvh::Pair> sorted) {
    insertInto(makeRowOf(slot), sorted);
    m_entries += sorted.size();
  });
}

/// @param entries (slot, partner), sorted
void GpuLbvhRefusedPairs::erase(const std::vector<lbvh::Pair>& entries) {
  forEachFirst(entries, [this](std::uint32_t slot, lbvh::View<const lbvh::Pair> sorted) {
    Row* row = rowOf(slot);
    if (row == nullptr) return;
    m_entries -= row->size();
    eraseFrom(*row, sorted);
    m_entries += row->size();
  });
}

void GpuLbvhRefusedPairs::forget(lbvh::View<const lbvh::Pair> gone) noexcept {
  applyNotes();
  for (std::size_t i = 0; i < gone.size() && m_entries != 0; ++i) note(gone[i], false);
  applyNotes();
}

// The partners' rows are edited together, before the next step, because destroyed proxies often
// share a partner with a long row.
void GpuLbvhRefusedPairs::forgetPairsOf(const GpuLbvhProxy* proxy) noexcept {
  if (!m_refused.empty() || !m_accepted.empty()) applyNotes();
  Row* row = rowOf(proxy->m_slot);
  if (row == nullptr) return;
  try {
    for (const std::uint32_t partner : *row) m_ended.push_back({partner, proxy->m_slot});
  } catch (const std::bad_alloc&) {
    return lose();
  }
  m_entries -= row->size();
  release(*row);
}

/// Calls visit(slot, row) for each marked proxy with refused pairs, in the order of slots.
template <class Visit>
void GpuLbvhRefusedPairs::forEachMarked(const Visit& visit) const {
  m_proxies.toAsk().forEach([&](std::uint32_t slot) {
    if (const Row* row = rowOf(slot)) visit(slot, *row);
  });
}

lbvh::View<const lbvh::Pair> GpuLbvhRefusedPairs::withMarked(lbvh::View<const lbvh::Pair> added) {
  applyNotes();
  m_isOffering = true;
  m_added = added;
  if (m_entries == 0) {
    release(m_behind, m_toOffer);
    return added;
  }
  // A pair of two marked proxies is taken from the row of its first proxy.
  const auto firstAfter = [](std::uint32_t slot, const Row& row) {
    return std::upper_bound(row.begin(), row.end(), slot);
  };
  std::size_t ahead = 0;
  m_behind.clear();
  forEachMarked([&](std::uint32_t slot, const Row& row) {
    const auto end = firstAfter(slot, row);
    ahead += static_cast<std::size_t>(row.end() - end);
    for (auto partner = row.begin(); partner != end; ++partner)
      if (!m_proxies.toAsk().contains(*partner)) m_behind.push_back({*partner, slot});
  });
  sortByFirst(m_behind);
  const auto behind = static_cast<std::ptrdiff_t>(m_behind.size());
  m_behind.insert(m_behind.end(), added.begin(), added.end());
  std::inplace_merge(m_behind.begin(), m_behind.begin() + behind, m_behind.end());

  m_toOffer.clear();
  m_toOffer.reserve(ahead + m_behind.size());
  auto other = m_behind.begin();
  forEachMarked([&](std::uint32_t slot, const Row& row) {
    for (auto partner = firstAfter(slot, row); partner != row.end(); ++partner) {
      const lbvh::Pair pair{slot, *partner};
      while (other != m_behind.end() && *other < pair) m_toOffer.push_back(*other++);
      m_toOffer.push_back(pair);
    }
  });
  m_toOffer.insert(m_toOffer.end(), other, m_behind.end());
  return {m_toOffer.data(), m_toOffer.size()};
}

/// Forgets all pairs. The next step offers all pairs that are not in the cache.
void GpuLbvhRefusedPairs::lose() {
  release(m_pages);
  release(m_ended, m_accepted, m_refused);
  m_entries = 0;
  m_hasLost = true;
}
