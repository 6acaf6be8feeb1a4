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
  const lbvh::View<const std::uint64_t> marks = m_proxies.marksToAsk();
  const auto isMarked = [&](std::uint32_t slot) {
    return (marks[slot / 64] >> slot % 64 & 1) != 0;
  };
  for (std::size_t word = 0; word < marks.size && size() > 0; ++word)
    for (std::uint64_t left = marks[word]; left != 0; left &= left - 1) {
      listPartners();
      const auto slot = static_cast<std::uint32_t>(64 * word) +
                        static_cast<std::uint32_t>(std::countr_zero(left));
      m_partners.forEachOf(slot, [&](std::uint32_t partner) {
        const lbvh::Pair pair = lbvh::makePair(slot, partner);
        const bool isKnown = partner < slot && isMarked(partner);
        if (!isKnown && contains(pair)) m_marked.push_back(pair);
      });
    }
  // A list may name a partner twice.
  std::sort(m_marked.begin(), m_marked.end());
  m_marked.erase(std::unique(m_marked.begin(), m_marked.end()), m_marked.end());
  return {m_marked.data(), m_marked.size()};
}
