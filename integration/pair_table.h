// SPDX-License-Identifier: Zlib
// Holds the pairs of the broad phase's own cache: Bullet's array, the index of each pair in it, and
// the partners of each proxy. When a pair is removed, the last pair takes its index, as in Bullet's
// cache. Pairs are identified by slots, because the memory of proxies may be freed before their
// pairs are removed. Calls no filter and no callback. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growing_array.h"
#include "pair_index.h"
#include "partners.h"

class GpuLbvhPairTable {
 public:
  class PlacesOf;

  std::size_t size() const { return m_index.size(); }
  btBroadphasePair& operator[](std::uint32_t place) { return m_pairs[static_cast<int>(place)]; }
  lbvh::Pair slots(std::uint32_t place) const { return m_index[place]; }
  /// The pair's index in array(), or kNullIndex.
  std::uint32_t find(lbvh::Pair slots) const { return m_index.find(slots); }

  /// Bullet's array. The caller must not add, remove or reorder pairs.
  btBroadphasePairArray& array() { return m_pairs; }
  const btBroadphasePairArray& array() const { return m_pairs; }
  /// Null if there are no pairs.
  btBroadphasePair* data() { return m_pairs.size() > 0 ? &m_pairs[0] : nullptr; }

  /// Reserves all memory needed to add `more` pairs and to remove them later.
  /// @param slots number of slots
  /// @throws std::bad_alloc
  void reserve(std::size_t more, std::size_t slots) {
    if (size() + more > m_reserved || slots > m_reservedSlots) grow(more, slots);
  }
  /// Frees memory if the table once had far more pairs. The pairs keep their addresses.
  void giveBackMemory(std::size_t slots) noexcept;

  /// Appends a new pair. Requires reserved memory.
  btBroadphasePair& push(lbvh::Pair slots, const btBroadphasePair& pair);
  /// The link to a pair. Its value is the pair's index, or kNullIndex. Valid until the next change.
  std::uint32_t& linkTo(lbvh::Pair slots) { return m_index.linkTo(slots); }
  void takeOut(std::uint32_t& link);

  /// Orders pairs by the unique id of the first object, and then by the id of the second object.
  enum class Order { ascending, descending };
  /// The indices of the pairs in this order. @throws std::bad_alloc
  std::vector<std::uint32_t> placesIn(Order order) const;
  /// Puts the pairs in this order. They keep their algorithms. Takes one pass over all pairs if few
  /// are out of order. Returns at once if the order is ascending and the table is known to have it.
  /// @throws std::bad_alloc, with nothing changed
  void sort(Order order);

  /// For prefetching.
  const GpuLbvhPairIndex& index() const { return m_index; }
  /// For tests.
  const GpuLbvhPartners& partners() const { return m_partners; }

 private:
  using Places = GpuLbvhGrowingArray<std::uint32_t>;

  void grow(std::size_t more, std::size_t slots);
  void useMemory();
  bool list(std::uint32_t slot, Places& places);

  GpuLbvhPages m_memory;  ///< the memory of m_pairs
  btBroadphasePairArray m_pairs;
  GpuLbvhPairIndex m_index;
  GpuLbvhPartners m_partners;
  Places m_spare;                                   ///< memory for one PlacesOf
  std::size_t m_reserved = 0, m_reservedSlots = 0;  ///< numbers of reserved pairs and slots
  bool m_isAscending = true;                        ///< known to be in ascending order
};

/// Lists the indices of one proxy's pairs in ascending order. Later changes of the table do not
/// change the list. Allocates only if another list exists, which happens if a callback calls the
/// cache. An allocation could do harm if a program frees its bodies before its world. The world
/// then reads the bodies' proxy pointers in freed memory, which the allocation could overwrite.
class GpuLbvhPairTable::PlacesOf {
 public:
  PlacesOf(GpuLbvhPairTable& table, std::uint32_t slot) : m_table(table) {
    std::swap(m_places, table.m_spare);
    m_areListed = table.list(slot, m_places);
  }
  ~PlacesOf() { std::swap(m_places, m_table.m_spare); }
  PlacesOf(const PlacesOf&) = delete;
  PlacesOf& operator=(const PlacesOf&) = delete;

  /// False if there was no memory.
  bool areListed() const { return m_areListed; }
  std::size_t size() const { return m_places.size(); }
  std::uint32_t operator[](std::size_t i) const { return m_places[i]; }

 private:
  GpuLbvhPairTable& m_table;
  Places m_places;
  bool m_areListed;
};
