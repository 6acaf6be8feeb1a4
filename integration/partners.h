// Whom each proxy may be paired with: a superset, so that removing a pair leaves it alone. It is
// built from all pairs when somebody asks, takes a few more in, and is dropped where many come.
// Proxies by slot; does not say which of the pairs still exist. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"

class GpuLbvhPartners {
 public:
  bool isKnown() const { return m_isKnown; }
  void drop() { m_isKnown = false; }

  /// slotsOf(i): the proxies of pair i. @throws std::bad_alloc, with nothing known
  template <class SlotsOf>
  void build(std::size_t pairs, std::size_t slots, const SlotsOf& slotsOf) {
    drop();
    m_nodes.clear();
    m_nodes.reserve(2 * pairs + pairs / 2 + 256);
    m_first.assign(slots, kNone);
    m_isKnown = true;
    for (std::size_t pair = 0; pair < pairs; ++pair) add(slotsOf(pair));
  }

  /// Keeps what is known true; where that takes memory, nothing is known any more.
  void add(lbvh::Pair pair) {
    if (!m_isKnown) return;
    if (m_nodes.size() + 2 > m_nodes.capacity() || pair.second >= m_first.size()) return drop();
    link(pair.first, pair.second);
    link(pair.second, pair.first);
  }

  /// Only while they are known: visit(slot) for each, some more than once.
  template <class Visit>
  void forEachOf(std::uint32_t slot, const Visit& visit) const {
    if (slot >= m_first.size()) return;
    for (std::uint32_t at = m_first[slot]; at != kNone; at = m_nodes[at].next)
      visit(m_nodes[at].partner);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    std::uint32_t partner, next;
  };

  void link(std::uint32_t slot, std::uint32_t partner) {
    m_nodes.push_back({partner, m_first[slot]});
    m_first[slot] = static_cast<std::uint32_t>(m_nodes.size() - 1);
  }

  std::vector<std::uint32_t> m_first;  // node of each slot
  std::vector<Node> m_nodes;
  bool m_isKnown = false;
};
