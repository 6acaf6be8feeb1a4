#include "pair_index.h"

#include <algorithm>

void GpuLbvhPairIndex::reserve(std::size_t more) {
  const std::size_t all = m_entries.size() + more;
  if (all > m_entries.capacity()) m_entries.reserve(all + all / 4 + 64);
  if (all <= m_buckets.size()) return;
  int power = 6;
  while ((std::size_t{1} << power) < all) ++power;
  std::vector<std::uint32_t>(std::size_t{1} << power).swap(m_buckets);
  m_bucketShift = 64 - power;
  relinkBuckets();
}

void GpuLbvhPairIndex::relinkBuckets() {
  std::fill(m_buckets.begin(), m_buckets.end(), lbvh::kNullIndex);
  for (std::uint32_t place = 0; place < m_entries.size(); ++place) linkInBucket(place);
}
