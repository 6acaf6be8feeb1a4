// SPDX-License-Identifier: Zlib
#include "refused_pairs.h"

#include <algorithm>
#include <bit>
#include <new>

void GpuLbvhRefusedPairs::add(lbvh::Pair pair) noexcept {
  if (contains(pair)) return;
  try {
    m_pairs.reserve(1);
  } catch (const std::bad_alloc&) {
    m_hasLost = true;
    return;
  }
  m_pairs.push(pair);
  m_partners.add(pair);
}

/// @throws std::bad_alloc
void GpuLbvhRefusedPairs::listPartners() {
  if (!m_partners.isValid())
    m_partners.build(size(), m_proxies.boxes().size, [this](std::size_t pair) {
      return m_pairs[static_cast<std::uint32_t>(pair)];
    });
}

void GpuLbvhRefusedPairs::forgetPairsOf(const GpuLbvhProxy* proxy) noexcept {
  if (size() == 0) return;
  try {
    listPartners();
  } catch (const std::bad_alloc&) {
    while (size() > 0) forget(m_pairs[static_cast<std::uint32_t>(size() - 1)]);
    m_hasLost = true;
    return;
  }
  m_partners.forEachOf(proxy->m_slot, [&](std::uint32_t partner) {
    forget(lbvh::makePair(proxy->m_slot, partner));
  });
}

lbvh::View<const lbvh::Pair> GpuLbvhRefusedPairs::findMarked() {
  m_marked.clear();
  m_behind.clear();
  const lbvh::View<const std::uint64_t> marks = m_proxies.marksToAsk();
  for (std::size_t word = 0; word < marks.size && size() > 0; ++word)
    for (std::uint64_t left = marks[word]; left != 0; left &= left - 1)
      findPairsOf(static_cast<std::uint32_t>(64 * word) +
                  static_cast<std::uint32_t>(std::countr_zero(left)));
  // Most pairs are found from their first proxy, and so are in order. The rest are few.
  std::sort(m_behind.begin(), m_behind.end());
  const auto found = static_cast<std::ptrdiff_t>(m_marked.size());
  m_marked.insert(m_marked.end(), m_behind.begin(), m_behind.end());
  std::inplace_merge(m_marked.begin(), m_marked.begin() + found, m_marked.end());
  // A list of partners may have the same partner twice.
  m_marked.erase(std::unique(m_marked.begin(), m_marked.end()), m_marked.end());
  return viewOf(m_marked);
}

/// Adds the refused pairs of a marked proxy, except those that were found from a marked partner
/// with a lower slot.
void GpuLbvhRefusedPairs::findPairsOf(std::uint32_t slot) {
  listPartners();
  const lbvh::View<const std::uint64_t> marks = m_proxies.marksToAsk();
  const auto begin = static_cast<std::ptrdiff_t>(m_marked.size());
  m_partners.forEachOf(slot, [&](std::uint32_t partner) {
    const bool isBehind = partner < slot;
    if (isBehind && (marks[partner / 64] >> partner % 64 & 1) != 0) return;
    const lbvh::Pair pair = lbvh::makePair(slot, partner);
    if (contains(pair)) (isBehind ? m_behind : m_marked).push_back(pair);
  });
  std::sort(m_marked.begin() + begin, m_marked.end());
}
