// SPDX-License-Identifier: Zlib
#include "pair_index.h"

#include <algorithm>

void GpuLbvhPairIndex::reserve(std::size_t more) {
  const std::size_t all = m_entries.size() + more;
  m_entries.reserve(all);
  const std::size_t buckets = 2 * all + 64;  // half as many would cost a fifth of the time
  m_buckets.reserve(buckets);
  while (m_buckets.size() < buckets) addBucket();
}

/// Halves one of the buckets that there are.
void GpuLbvhPairIndex::addBucket() {
  constexpr std::size_t kAhead = 16;  // buckets are halved in a row
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

void GpuLbvhPairIndex::relinkBuckets() {
  for (std::size_t bucket = 0; bucket < m_buckets.size(); ++bucket)
    m_buckets[bucket] = lbvh::kNullIndex;
  for (std::uint32_t place = 0; place < m_entries.size(); ++place) linkInBucket(place);
}
