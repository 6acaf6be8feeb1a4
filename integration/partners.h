// SPDX-License-Identifier: Zlib
// Lists the partners of each proxy (the other proxies of its pairs), so that its pairs can be
// removed without a scan of all pairs. Removing a pair does not update the list, so the caller
// checks which of the listed pairs still exist. The list is built from all pairs when it is needed.
// New pairs are added to it until its capacity is used up. Then the list becomes invalid. So in a
// world of n pairs it is built at most once per n / 4 new pairs. Its memory is reserved when pairs
// are added, so building it allocates nothing. On Linux the memory is not touched before the list
// is built. Proxies are identified by slot. Not installed.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "broadphase/types.h"
#include "growing_array.h"

class GpuLbvhPartners {
 public:
  bool isValid() const { return m_isValid; }

  /// Reserves memory to list `pairs` pairs whose slots are less than `slots`.
  /// @throws std::bad_alloc, with the list unchanged
  void reserve(std::size_t pairs, std::size_t slots) {
    m_nodes.reserve(nodesFor(pairs));
    m_first.reserve(slots);
  }
  /// Frees the memory beyond the capacity that reserve(pairs, slots) gives. Makes the list invalid.
  void shrink(std::size_t pairs, std::size_t slots) noexcept {
    m_isValid = false;
    m_nodes.clear();
    m_first.clear();
    m_nodes.shrink(nodesFor(pairs));
    m_first.shrink(slots);
  }
  /// How many partners the list can hold in total.
  std::size_t capacity() const { return m_nodes.capacity(); }

  /// Requires reserve() for these pairs.
  /// @param slotsOf slotsOf(i) returns the slots of pair i
  template <class SlotsOf>
  void build(std::size_t pairs, const SlotsOf& slotsOf) {
    m_nodes.clear();
    m_first.clear();
    m_isValid = true;
    for (std::size_t pair = 0; pair < pairs; ++pair) add(slotsOf(pair));
    assert(m_isValid);
  }

  /// Adds a pair to a valid list, or makes the list invalid if its capacity is used up.
  void add(lbvh::Pair pair) {
    if (m_isValid) addToValid(pair);
  }

  /// Calls visit(slot) for each listed partner, possibly more than once. Requires isValid().
  template <class Visit>
  void forEachOf(std::uint32_t slot, const Visit& visit) const {
    if (slot >= m_first.size()) return;
    for (std::uint32_t at = m_first[slot]; at != lbvh::kNullIndex; at = m_nodes[at].next)
      visit(m_nodes[at].partner);
  }
  /// Keeps only the partners partnerOf(0) to partnerOf(count - 1) of a slot. Without this, a pair
  /// would be listed once more each time it is removed and added again.
  template <class PartnerOf>
  void keep(std::uint32_t slot, std::size_t count, const PartnerOf& partnerOf) {
    if (slot >= m_first.size()) return;
    std::uint32_t* link = &m_first[slot];
    for (std::size_t k = 0; k < count; ++k) {
      m_nodes[*link].partner = partnerOf(k);
      link = &m_nodes[*link].next;
    }
    *link = lbvh::kNullIndex;
  }

 private:
  struct Node {
    std::uint32_t partner, next;
  };
  /// Two nodes per pair, with room for a quarter more pairs, so that the list is rarely rebuilt.
  static std::size_t nodesFor(std::size_t pairs) { return 2 * (pairs + pairs / 4); }

  void addToValid(lbvh::Pair pair) {
    m_isValid = m_nodes.size() + 2 <= m_nodes.capacity() && pair.second < m_first.capacity();
    if (!m_isValid) return;
    while (m_first.size() <= pair.second) m_first.push_back(lbvh::kNullIndex);
    link(pair.first, pair.second);
    link(pair.second, pair.first);
  }
  void link(std::uint32_t slot, std::uint32_t partner) {
    m_nodes.push_back({partner, m_first[slot]});
    m_first[slot] = static_cast<std::uint32_t>(m_nodes.size() - 1);
  }

  GpuLbvhGrowingArray<std::uint32_t> m_first;  ///< first node of each slot
  GpuLbvhGrowingArray<Node> m_nodes;
  bool m_isValid = false;
};
