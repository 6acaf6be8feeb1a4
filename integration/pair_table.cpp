// SPDX-License-Identifier: Zlib
#include "pair_table.h"

#include <algorithm>
#include <new>

#include "proxies.h"

namespace {

std::size_t bytesFor(std::size_t pairs) {
  return (pairs + pairs / 4 + 64) * sizeof(btBroadphasePair);
}

std::uint64_t keyOf(const btBroadphasePair& pair) {
  return std::uint64_t{static_cast<std::uint32_t>(pair.m_pProxy0->m_uniqueId)} << 32 |
         static_cast<std::uint32_t>(pair.m_pProxy1->m_uniqueId);
}

/// The indices of the keys, in ascending order of the keys. Usually nearly all keys are in order
/// already. Only keys that are out of order, each with a neighbour, are sorted. They are then
/// merged with the rest.
std::vector<std::uint32_t> sortedPlaces(const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint32_t> inOrder, others, places;
  inOrder.reserve(keys.size());
  for (std::uint32_t place = 0; place < keys.size(); ++place) {
    if (inOrder.empty() || keys[inOrder.back()] < keys[place]) {
      inOrder.push_back(place);
      continue;
    }
    // One of the two keys is out of order. It can be either of them, so both are removed.
    others.push_back(inOrder.back());
    others.push_back(place);
    inOrder.pop_back();
  }
  const auto isBefore = [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; };
  std::sort(others.begin(), others.end(), isBefore);
  places.resize(keys.size());
  std::merge(inOrder.begin(), inOrder.end(), others.begin(), others.end(), places.begin(),
             isBefore);
  return places;
}

}  // namespace

void GpuLbvhPairTable::grow(std::size_t more, std::size_t slots) {
  m_index.reserve(more);
  const std::size_t all = size() + more;
  m_partners.reserve(all, slots);
  m_spare.reserve(m_partners.capacity());
  if (all > static_cast<std::size_t>(m_pairs.capacity())) {
    // Bullet's array would copy all pairs into new memory, which would make this step slow.
    m_memory.grow(bytesFor(all));
    useMemory();
  }
  m_reserved = std::max(m_reserved, all);
  m_reservedSlots = std::max(m_reservedSlots, slots);
}

void GpuLbvhPairTable::giveBackMemory(std::size_t slots) noexcept {
  m_reserved = m_reservedSlots = 0;
  m_index.giveBackMemory();
  const std::size_t bytes = bytesFor(size());
  if (m_memory.bytes() <= 8 * bytes || !m_memory.shrink(bytes)) return;
  useMemory();
  m_partners.shrink(size(), slots);
  m_spare.clear();
  m_spare.shrink(m_partners.capacity());
}

/// Passes the address and size of m_memory to Bullet's array.
void GpuLbvhPairTable::useMemory() {
  const int size = m_pairs.size();
  m_pairs.resizeNoInitialize(0);
  m_pairs.initializeFromBuffer(m_memory.data(), size,
                               static_cast<int>(m_memory.bytes() / sizeof(btBroadphasePair)));
}

btBroadphasePair& GpuLbvhPairTable::push(lbvh::Pair slots, const btBroadphasePair& pair) {
  m_isAscending = false;
  m_pairs.push_back(pair);
  m_index.push(slots);
  m_partners.add(slots);
  return m_pairs[m_pairs.size() - 1];
}

void GpuLbvhPairTable::takeOut(std::uint32_t& link) {
  m_isAscending = false;
  const std::uint32_t place = m_index.takeOut(link);
  if (static_cast<int>(place) + 1 < m_pairs.size()) (*this)[place] = m_pairs[m_pairs.size() - 1];
  m_pairs.pop_back();
}

std::vector<std::uint32_t> GpuLbvhPairTable::placesIn(Order order) const {
  std::vector<std::uint64_t> keys;
  keys.reserve(size());
  for (int place = 0; place < m_pairs.size(); ++place) {
    const std::uint64_t key = keyOf(m_pairs[place]);
    keys.push_back(order == Order::ascending ? key : ~key);
  }
  return sortedPlaces(keys);
}

void GpuLbvhPairTable::sort(Order order) {
  if (order == Order::ascending && m_isAscending) return;
  const std::vector<std::uint32_t> places = placesIn(order);
  std::vector<btBroadphasePair> sorted;
  sorted.reserve(places.size());
  for (const std::uint32_t place : places) sorted.push_back((*this)[place]);
  m_index.reorder({places.data(), places.size()});
  std::copy(sorted.begin(), sorted.end(), data());
  m_isAscending = order == Order::ascending;
}

/// Writes the indices of the slot's pairs to `places`.
/// @return false if there is no memory
bool GpuLbvhPairTable::list(std::uint32_t slot, Places& places) {
  if (!m_partners.isValid())
    m_partners.build(
        size(), [this](std::size_t pair) { return m_index[static_cast<std::uint32_t>(pair)]; });
  places.clear();
  try {
    places.reserve(m_partners.capacity());
  } catch (const std::bad_alloc&) {
    return false;
  }
  m_partners.forEachOf(slot, [&](std::uint32_t partner) {
    if (size() > 0) m_index.prefetchBucket(m_index.bucketOf(lbvh::makePair(slot, partner)));
    places.push_back(partner);
  });
  std::uint32_t *const begin = places.data(), *end = begin + places.size();
  for (std::uint32_t* one = begin; one < end; ++one)
    *one = m_index.find(lbvh::makePair(slot, *one));
  std::sort(begin, end);
  end = std::unique(begin, end);
  // find() returned kNullIndex for each partner whose pair was removed.
  if (end > begin && end[-1] == lbvh::kNullIndex) --end;
  places.truncate(static_cast<std::size_t>(end - begin));
  m_partners.keep(slot, places.size(), [&](std::size_t k) {
    const lbvh::Pair pair = m_index[begin[k]];
    return pair.first == slot ? pair.second : pair.first;
  });
  return true;
}
