// Where the pairs of an array lie: a hash table from the slots of two proxies to a place in the
// array, whose pairs are removed as Bullet does it, by moving the last one into the gap. Does not
// know the array. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "broadphase/prefetch.h"
#include "broadphase/types.h"

class GpuLbvhPairIndex {
 public:
  std::size_t size() const { return m_entries.size(); }
  /// As many as there is room for.
  std::size_t capacity() const { return m_entries.capacity(); }
  lbvh::Pair operator[](std::uint32_t place) const { return m_entries[place].slots(); }

  /// The pair's place, or kNullIndex.
  std::uint32_t find(lbvh::Pair pair) const {
    return m_buckets.empty() ? lbvh::kNullIndex : const_cast<GpuLbvhPairIndex*>(this)->linkTo(pair);
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
  void prefetchBucket(lbvh::Pair pair) const { ask(&m_buckets[bucketOf(pair)]); }
  void prefetchFirst(lbvh::Pair pair) const {
    const std::uint32_t first = m_buckets[bucketOf(pair)];
    if (first != lbvh::kNullIndex) ask(&m_entries[first]);
  }
  /// Few buckets have more than two.
  void prefetchSecond(lbvh::Pair pair) const {
    const std::uint32_t first = m_buckets[bucketOf(pair)];
    if (first == lbvh::kNullIndex) return;
    const std::uint32_t second = m_entries[first].inBucket;
    if (second != lbvh::kNullIndex) ask(&m_entries[second]);
  }

  /// As lbvh::prefetch. GCC takes a function that does nothing else for one without any effect, and
  /// leaves out calls of it, unless it compiles for a shared library.
  static void ask(const void* at) {
    lbvh::prefetch(at);
#if defined(__GNUC__)
    __asm__ volatile("");
#endif
  }

 private:
  /// The slots of the pair at this place, and the next place of its bucket.
  struct Entry {
    std::uint32_t first, second;  // as of an lbvh::Pair, which would pad the entry to 16 bytes
    std::uint32_t inBucket;

    lbvh::Pair slots() const { return {first, second}; }
  };

  std::size_t bucketOf(lbvh::Pair pair) const {
    const std::uint64_t bits = (std::uint64_t{pair.first} << 32) | pair.second;
    return (bits * 0x9E3779B97F4A7C15u) >> m_bucketShift;  // 2^64 / golden ratio
  }

  void linkInBucket(std::uint32_t place) {
    std::uint32_t& first = m_buckets[bucketOf(m_entries[place].slots())];
    m_entries[place].inBucket = std::exchange(first, place);
  }
  void relinkBuckets();

  std::vector<Entry> m_entries;          ///< by place
  std::vector<std::uint32_t> m_buckets;  ///< the first place of each; a power of two of them
  int m_bucketShift = 0;                 ///< 64 less the power
};
