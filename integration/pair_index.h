// SPDX-License-Identifier: Zlib
// Where the pairs of an array lie: a hash table from the slots of two proxies to a place in it. A
// pair is removed as Bullet does it: the last one moves into the gap. Does not know the array. Not
// installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "broadphase/core/prefetch.h"
#include "broadphase/types.h"
#include "growing_array.h"

class GpuLbvhPairIndex {
 public:
  std::size_t size() const { return m_entries.size(); }
  lbvh::Pair operator[](std::uint32_t place) const { return m_entries[place].slots(); }

  /// The pair's place, or kNullIndex.
  std::uint32_t find(lbvh::Pair pair) const {
    return m_buckets.size() == 0 ? lbvh::kNullIndex
                                 : const_cast<GpuLbvhPairIndex*>(this)->linkTo(pair);
  }

  /// Room for `more` pairs than there are. @throws std::bad_alloc, with nothing changed
  void reserve(std::size_t more);

  /// At the end. The pair is new, and there is room for it.
  void push(lbvh::Pair pair) {
    m_entries.push_back({pair.first, pair.second, lbvh::kNullIndex});
    linkInBucket(static_cast<std::uint32_t>(m_entries.size() - 1));
  }

  /// The link to the pair in its bucket's list: its place, or kNullIndex. Valid until the next
  /// change. Only where there was room once.
  std::uint32_t& linkTo(lbvh::Pair pair) {
    std::uint32_t* link = &m_buckets[bucketOf(pair)];
    while (*link != lbvh::kNullIndex && m_entries[*link].slots() != pair)
      link = &m_entries[*link].inBucket;
    return *link;
  }

  /// Takes a pair out, and gives its place to the last one.
  /// @param link to the pair
  /// @return the place
  std::uint32_t takeOut(std::uint32_t& link) {
    const std::uint32_t place = link;
    link = m_entries[place].inBucket;
    if (place + 1 < m_entries.size()) {
      linkTo(m_entries.back().slots()) = place;
      m_entries[place] = m_entries.back();
    }
    m_entries.pop_back();
    return place;
  }

  /// Gives every place the pair slotsOf(place): the same pairs in another order.
  template <class SlotsOf>
  void reorder(const SlotsOf& slotsOf) {
    for (std::uint32_t place = 0; place < m_entries.size(); ++place) {
      const lbvh::Pair slots = slotsOf(place);
      m_entries[place].first = slots.first;
      m_entries[place].second = slots.second;
    }
    relinkBuckets();
  }

  /// What find() reads, in stages: each reads what the one before it has asked for. Only
  /// where there was room once.
  void prefetchBucket(lbvh::Pair pair) const { lbvh::prefetch(&m_buckets[bucketOf(pair)]); }
  void prefetchFirst(lbvh::Pair pair) const {
    const std::uint32_t first = m_buckets[bucketOf(pair)];
    if (first != lbvh::kNullIndex) lbvh::prefetch(&m_entries[first]);
  }
  /// Few buckets have more than two.
  void prefetchSecond(lbvh::Pair pair) const {
    const std::uint32_t first = m_buckets[bucketOf(pair)];
    if (first == lbvh::kNullIndex) return;
    const std::uint32_t second = m_entries[first].inBucket;
    if (second != lbvh::kNullIndex) lbvh::prefetch(&m_entries[second]);
  }

 private:
  /// The slots of the pair at this place, and the next place of its bucket.
  struct Entry {
    std::uint32_t first, second;  // as of an lbvh::Pair, which would pad the entry to 16 bytes
    std::uint32_t inBucket;

    lbvh::Pair slots() const { return {first, second}; }
  };

  // Linear hashing: the number of buckets grows one by one, each time by the halves of one bucket.
  // So the table never has to be made anew, which would be felt in a step.
  std::size_t bucketOf(lbvh::Pair pair) const {
    const std::uint64_t bits = (std::uint64_t{pair.first} << 32) | pair.second;
    const std::uint64_t hash = (bits * 0x9E3779B97F4A7C15u) >> 32;  // 2^64 / golden ratio
    const std::size_t bucket = static_cast<std::size_t>(hash) & (2 * m_whole - 1);
    // No branch: nobody could predict it.
    return bucket - (m_whole & (std::size_t{0} - std::size_t{bucket >= m_buckets.size()}));
  }

  void linkInBucket(std::uint32_t place) {
    std::uint32_t& first = m_buckets[bucketOf(m_entries[place].slots())];
    m_entries[place].inBucket = std::exchange(first, place);
  }
  void addBucket();
  void relinkBuckets();

  GpuLbvhGrowingArray<Entry> m_entries;          ///< by place
  GpuLbvhGrowingArray<std::uint32_t> m_buckets;  ///< the first place of each
  std::size_t m_whole = 1;  ///< the largest power of two of buckets that there are
};
