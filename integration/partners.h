// SPDX-License-Identifier: Zlib
// The partners of each proxy, so that its pairs can be removed without a scan of all pairs. The
// list may name more than there are: removing a pair leaves it alone. It is built from all pairs
// when it is needed, takes in a few more, and becomes invalid where many come. Knows proxies by
// slot; does not say which of the pairs still exist. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"

class GpuLbvhPartners {
 public:
  bool isValid() const { return m_isValid; }
  void invalidate() { m_isValid = false; }

  /// @param slotsOf slotsOf(i) gives the proxies of pair i
  /// @throws std::bad_alloc; then the list is not valid
  template <class SlotsOf>
  void build(std::size_t pairs, std::size_t slots, const SlotsOf& slotsOf) {
    invalidate();
    m_nodes.clear();
    m_nodes.reserve(2 * pairs + pairs / 2 + 256);
    m_first.reserve(slots + slots / 8 + 64);
    m_first.assign(slots, lbvh::kNullIndex);
    m_isValid = true;
    for (std::size_t pair = 0; pair < pairs; ++pair) add(slotsOf(pair));
  }

  /// Does nothing to an invalid list. Makes a valid one invalid if there is no room left.
  void add(lbvh::Pair pair) {
    if (m_isValid) addToValid(pair);
  }

  /// Calls visit(slot) for each partner, for some more than once. Only while the list is valid.
  template <class Visit>
  void forEachOf(std::uint32_t slot, const Visit& visit) const {
    if (slot >= m_first.size()) return;
    for (std::uint32_t at = m_first[slot]; at != lbvh::kNullIndex; at = m_nodes[at].next)
      visit(m_nodes[at].partner);
  }

 private:
  struct Node {
    std::uint32_t partner, next;
  };

  void addToValid(lbvh::Pair pair) {
    if (m_nodes.size() + 2 > m_nodes.capacity() || pair.second >= m_first.capacity())
      return invalidate();
    if (pair.second >= m_first.size()) m_first.resize(pair.second + 1, lbvh::kNullIndex);
    link(pair.first, pair.second);
    link(pair.second, pair.first);
  }
  void link(std::uint32_t slot, std::uint32_t partner) {
    m_nodes.push_back({partner, m_first[slot]});
    m_first[slot] = static_cast<std::uint32_t>(m_nodes.size() - 1);
  }

  std::vector<std::uint32_t> m_first;  ///< node of each slot
  std::vector<Node> m_nodes;
  bool m_isValid = false;
};
