// SPDX-License-Identifier: Zlib
// Defines a hash table that maps the slots of two proxies to the index of their pair in an array.
// As in Bullet's cache, the last pair moves to the index of a removed one. Does not hold the array
// itself. Not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "broadphase/core/prefetch.h"
#include "broadphase/types.h"
#include "growing_array.h"

class GpuLbvhPairIndex {
 public:
  std::size_t size() const { return m_entries.size(); }
  lbvh::Pair operator[](std::uint32_t place) const { return m_entries[place].slots(); }

  /// The pair's index, or kNullIndex.
  std::uint32_t find(lbvh::Pair pair) const {
    return m_buckets.size() == 0 ? lbvh::kNullIndex
                                 : const_cast<GpuLbvhPairIndex*>(this)->linkTo(pair);
  }

  /// Reserves capacity for `more` additional pairs. @throws std::bad_alloc, with nothing changed
  void reserve(std::size_t more) {
    const std::size_t all = m_entries.size() + more;
    m_entries.reserve(all);
    m_buckets.reserve(bucketsFor(all));
    while (m_buckets.size() < bucketsFor(all)) addBucket();
  }

  /// Frees memory if there were many more pairs before.
  void giveBackMemory() noexcept {
    if (m_buckets.size() <= 8 * bucketsFor(size())) return;
    m_buckets.clear();
    m_whole = 1;
    while (m_buckets.size() < bucketsFor(size())) addBucket();
    for (std::uint32_t place = 0; place < m_entries.size(); ++place) linkInBucket(place);
    m_buckets.shrink(m_buckets.size());
    m_entries.shrink(m_entries.size());
  }

  /// Appends a new pair. Requires reserved capacity.
  void push(lbvh::Pair pair) {
    m_entries.push_back({pair.first, pair.second, lbvh::kNullIndex});
    linkInBucket(static_cast<std::uint32_t>(m_entries.size() - 1));
  }

  /// The link to the pair in its bucket's list. Its value is the pair's index, or kNullIndex. Valid
  /// until the next change. Requires an earlier reserve().
  std::uint32_t& linkTo(lbvh::Pair pair) {
    std::uint32_t* link = &m_buckets[bucketOf(pair)];
    while (*link != lbvh::kNullIndex && m_entries[*link].slots() != pair)
      link = &m_entries[*link].inBucket;
    return *link;
  }

  /// Removes a pair, and moves the last pair to its index.
  /// @param link the link to the pair
  /// @return the index
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

  /// Updates the index after the array has been reordered.
  /// @param places for each new index, the pair's previous index
  /// @throws std::bad_alloc, with nothing changed
  void reorder(lbvh::View<const std::uint32_t> places) {
    std::vector<std::uint32_t> newPlaces(places.size());
    std::vector<Entry> entries;
    entries.reserve(places.size());
    for (const std::uint32_t place : places) {
      newPlaces[place] = static_cast<std::uint32_t>(entries.size());
      entries.push_back(m_entries[place]);
    }
    const auto renumber = [&](std::uint32_t& place) {
      if (place != lbvh::kNullIndex) place = newPlaces[place];
    };
    for (std::size_t bucket = 0; bucket < m_buckets.size(); ++bucket) renumber(m_buckets[bucket]);
    for (Entry& entry : entries) renumber(entry.inBucket);
    std::copy(entries.begin(), entries.end(), m_entries.data());
  }

  /// The number of the bucket to which the pair belongs. Requires an earlier reserve().
  std::size_t bucketOf(lbvh::Pair pair) const {
    const std::uint64_t bits = (std::uint64_t{pair.first} << 32) | pair.second;
    const std::uint64_t hash = (bits * 0x9E3779B97F4A7C15u) >> 32;  // 2^64 / golden ratio
    const std::size_t bucket = static_cast<std::size_t>(hash) & (2 * m_whole - 1);
    // Branchless, because the branch would be unpredictable.
    return bucket - (m_whole & (std::size_t{0} - std::size_t{bucket >= m_buckets.size()}));
  }
  /// The first of three stages that prefetch what find() reads in a bucket. Each stage reads what
  /// the previous stage has prefetched.
  void prefetchBucket(std::size_t bucket) const { lbvh::prefetch(&m_buckets[bucket]); }
  void prefetchFirst(std::size_t bucket) const {
    const std::uint32_t first = m_buckets[bucket];
    if (first != lbvh::kNullIndex) lbvh::prefetch(&m_entries[first]);
  }
  /// This is the last stage, because few buckets have more than two pairs.
  void prefetchSecond(std::size_t bucket) const {
    const std::uint32_t first = m_buckets[bucket];
    if (first == lbvh::kNullIndex) return;
    const std::uint32_t second = m_entries[first].inBucket;
    if (second != lbvh::kNullIndex) lbvh::prefetch(&m_entries[second]);
  }

 private:
  /// The slots of a pair, and the index of the next pair in the same bucket.
  struct Entry {
    std::uint32_t first, second;  // not an lbvh::Pair, which would pad the entry to 16 bytes
    std::uint32_t inBucket;

    lbvh::Pair slots() const { return {first, second}; }
  };

  /// With half as many buckets, the index would take a fifth more time.
  static std::size_t bucketsFor(std::size_t pairs) { return 2 * pairs + 64; }

  void linkInBucket(std::uint32_t place) {
    std::uint32_t& first = m_buckets[bucketOf(m_entries[place].slots())];
    m_entries[place].inBucket = std::exchange(first, place);
  }

  /// Adds a bucket by splitting another one. This is linear hashing: buckets are added one at a
  /// time, and each receives its pairs from one other bucket. So no step has to rebuild the whole
  /// table, which would be slow.
  void addBucket() {
    constexpr std::size_t kAhead = 16;  // prefetches for the bucket to be split kAhead calls later
    const std::size_t added = m_buckets.size();
    if (added == 2 * m_whole) m_whole = added;
    m_buckets.push_back(lbvh::kNullIndex);
    if (added == 0) return;
    const std::size_t halved = added - m_whole, later = std::min(halved + kAhead, added);
    if (m_buckets[later] != lbvh::kNullIndex) lbvh::prefetch(&m_entries[m_buckets[later]]);
    std::uint32_t place = std::exchange(m_buckets[halved], lbvh::kNullIndex);
    while (place != lbvh::kNullIndex) {
      const std::uint32_t next = m_entries[place].inBucket;
      linkInBucket(place);
      place = next;
    }
  }

  GpuLbvhGrowingArray<Entry> m_entries;          ///< by index
  GpuLbvhGrowingArray<std::uint32_t> m_buckets;  ///< index of each bucket's first pair
  std::size_t m_whole = 1;  ///< the largest power of two below the number of buckets, at least 1
};
