// SPDX-License-Identifier: Zlib
#include "pair_cache.h"

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>
#include <BulletCollision/BroadphaseCollision/btDispatcher.h>
#include <BulletCollision/CollisionDispatch/btCollisionObject.h>
#include <BulletCollision/NarrowPhaseCollision/btPersistentManifold.h>
#include <LinearMath/btQuickprof.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <new>
#include <utility>
#include <vector>

#include "broadphase/core/prefetch.h"

namespace {

using Order = GpuLbvhPairTable::Order;

/// Prefetches the pair's first contact manifold. Most pairs have only one.
void prefetchManifold(const btBroadphasePair& pair) {
  if (pair.m_algorithm == nullptr) return;
  btPersistentManifold* few[8];
  btManifoldArray manifolds;
  manifolds.initializeFromBuffer(static_cast<void*>(few), 0, 8);
  pair.m_algorithm->getAllContactManifolds(manifolds);
  if (manifolds.size() > 0) lbvh::prefetch(manifolds[0], sizeof(btPersistentManifold));
}

/// With fewer pairs, the narrow phase finds most of their data in the processor's caches. Then
/// prefetching would only cost time. For 1,000 pairs it took nearly as long as the broad phase.
constexpr int kMinPrefetched = 8192;

/// The number of pairs that are prefetched together. With 16 pairs the processor still waited for
/// memory.
constexpr std::size_t kBatch = 64;

/// Calls apply(few) for consecutive batches of at most kBatch pairs.
template <class Apply>
void forBatches(lbvh::View<const lbvh::Pair> pairs, const Apply& apply) {
  for (std::size_t begin = 0; begin < pairs.size(); begin += kBatch)
    apply(
        lbvh::View<const lbvh::Pair>{pairs.data() + begin, std::min(kBatch, pairs.size() - begin)});
}

/// Prefetches what the index will read to find the pairs passed to add().
class Lookups {
 public:
  explicit Lookups(const GpuLbvhPairIndex& index) : m_index(index) {}
  void add(lbvh::Pair pair) {
    m_buckets[m_count] = m_index.bucketOf(pair);
    m_index.prefetchBucket(m_buckets[m_count++]);
  }
  void prefetch() const {
    for (std::size_t k = 0; k < m_count; ++k) m_index.prefetchFirst(m_buckets[k]);
    for (std::size_t k = 0; k < m_count; ++k) m_index.prefetchSecond(m_buckets[k]);
  }

 private:
  const GpuLbvhPairIndex& m_index;
  std::size_t m_buckets[2 * kBatch], m_count = 0;
};

}  // namespace

btBroadphasePair* GpuLbvhPairCache::findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  const std::uint32_t pair =
      m_proxies.ownBoth(a, b) ? m_table.find(slotsOf(a, b)) : lbvh::kNullIndex;
  return pair == lbvh::kNullIndex ? nullptr : &m_table[pair];
}

bool GpuLbvhPairCache::needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const {
  if (m_filter != nullptr) return m_filter->needBroadphaseCollision(a, b);
  return lbvh::shouldCollide(filterOf(a), filterOf(b));
}

btBroadphasePair* GpuLbvhPairCache::add(lbvh::Pair pair, btBroadphaseProxy* a,
                                        btBroadphaseProxy* b) {
  const std::uint32_t last = m_proxies.lastSerial();
  if (!needsBroadphaseCollision(a, b)) return nullptr;
  if (m_filter != nullptr && !m_proxies.areFrom(last, a, b)) return nullptr;
  std::uint32_t there = m_table.find(pair);
  if (there != lbvh::kNullIndex) return &m_table[there];
  m_table.reserve(1, slots());
  if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
  if (m_ghost != nullptr) {
    m_ghost->addOverlappingPair(a, b);
    if (!m_proxies.areFrom(last, a, b)) return nullptr;
    there = m_table.find(pair);
    if (there != lbvh::kNullIndex) return &m_table[there];
    m_table.reserve(1, slots());  // the callback may have used the reserved capacity
  }
  return &m_table.push(pair, btBroadphasePair(*a, *b));
}

btBroadphasePair* GpuLbvhPairCache::refuseForeign() {
  constexpr const char* kWhy =
      "GpuLbvhBroadphase: its own pair cache takes only pairs of its own proxies";
  if (!std::exchange(m_hasRefused, true)) std::fprintf(stderr, "%s\n", kWhy);
  assert(false && "another broad phase's proxies in GpuLbvhBroadphase's own pair cache");
  return nullptr;
}

btBroadphasePair* GpuLbvhPairCache::addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  if (!m_proxies.ownBoth(a, b)) return refuseForeign();
  return addKnown(a, b);
}

btBroadphasePair* GpuLbvhPairCache::addKnown(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  try {
    return add(slotsOf(a, b), a, b);
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhPairCache: out of memory");
    return nullptr;
  }
}

// Tests the filter although the finder has tested groups and masks, because callbacks of the
// preceding removals may have changed these. This takes less than 0.6 % of a replay's instructions.
bool GpuLbvhPairCache::add(lbvh::View<const lbvh::Pair> pairs) {
  if (pairs.empty()) return true;
  m_table.reserve(m_filter == nullptr ? pairs.size() : 1,
                  slots());  // a callback may refuse most pairs
  forBatches(pairs, [this](lbvh::View<const lbvh::Pair> few) {
    prefetchToAdd(few);
    for (const lbvh::Pair pair : few) {
      if (!m_proxies.stillLives(pair)) continue;
      const bool isIn = add(pair, m_proxies.at(pair.first), m_proxies.at(pair.second)) != nullptr;
      if (m_proxies.stillLives(pair)) m_refused.note(pair, !isIn);
    }
  });
  return true;
}

void GpuLbvhPairCache::remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) {
  m_table.giveBackMemory(slots());
  if (m_table.size() == 0) return;
  forBatches(pairs, [&](lbvh::View<const lbvh::Pair> few) {
    prefetchToRemove(few, dispatcher != nullptr);
    for (const lbvh::Pair pair : few) {
      std::uint32_t& link = m_table.linkTo(pair);
      if (link == lbvh::kNullIndex || !m_proxies.stillLives(pair)) continue;
      if (concernsOthers(m_table[link]))
        removeAt(link, dispatcher);
      else
        m_table.takeOut(link);
    }
  });
}

// A step's pairs are scattered in memory, and the narrow phase has evicted them from the
// processor's caches. So the data of a batch of pairs are prefetched together. Each stage follows
// pointers that the previous stage has prefetched.

void GpuLbvhPairCache::prefetchToAdd(lbvh::View<const lbvh::Pair> few) const {
  Lookups lookups(m_table.index());
  for (const lbvh::Pair pair : few) {
    lookups.add(pair);
    for (const std::uint32_t slot : {pair.first, pair.second}) {
      const GpuLbvhProxy* proxy = m_proxies.at(slot);
      lbvh::prefetch(&proxy->m_collisionFilterGroup);
      lbvh::prefetch(&proxy->m_uniqueId);  // perhaps in the next cache line
      if (m_filter != nullptr || m_ghost != nullptr) lbvh::prefetch(&proxy->m_serial);
    }
  }
  lookups.prefetch();
}

/// @param freesManifolds false if there is no dispatcher
void GpuLbvhPairCache::prefetchToRemove(lbvh::View<const lbvh::Pair> few,
                                        bool freesManifolds) const {
  const GpuLbvhPairIndex& index = m_table.index();
  Lookups lookups(index);
  for (const lbvh::Pair pair : few) lookups.add(pair);
  // Each removal also moves the array's last pair. The k-th removal usually moves the k-th pair
  // from the end.
  for (std::size_t back = 1; back <= std::min(few.size(), index.size()); ++back)
    lookups.add(index[static_cast<std::uint32_t>(index.size() - back)]);
  lookups.prefetch();

  const btBroadphasePair* pairs[kBatch];
  std::size_t count = 0;
  for (const lbvh::Pair pair : few) {
    const std::uint32_t place = index.find(pair);
    if (place == lbvh::kNullIndex) continue;
    pairs[count] = &m_table.array()[static_cast<int>(place)];
    lbvh::prefetch(pairs[count++]);
  }
  for (std::size_t k = 0; k < count; ++k) lbvh::prefetch(pairs[k]->m_algorithm);
  for (std::size_t k = 0; k < count && freesManifolds; ++k) prefetchManifold(*pairs[k]);
}

void* GpuLbvhPairCache::removeAt(std::uint32_t pair, btDispatcher* dispatcher) {
  void* userData = m_table[pair].m_internalInfo1;
  if (concernsOthers(m_table[pair])) pair = announceRemoval(pair, dispatcher);
  if (pair != lbvh::kNullIndex) m_table.takeOut(m_table.linkTo(m_table.slots(pair)));
  return userData;
}

/// Frees the pair's algorithm and then calls the ghost callback. Each of these may change this
/// cache. Returns the pair's new index, or kNullIndex if a callback has removed the pair.
std::uint32_t GpuLbvhPairCache::announceRemoval(std::uint32_t pair, btDispatcher* dispatcher) {
  const lbvh::Pair slots = m_table.slots(pair);
  btBroadphaseProxy *a = m_table[pair].m_pProxy0, *b = m_table[pair].m_pProxy1;
  const std::uint32_t last = m_proxies.lastSerial();
  deferAlgorithm(m_table[pair], dispatcher);
  cleanOverlappingPair(m_table[pair], dispatcher);
  const auto areAlive = [&] { return m_proxies.areFrom(last, a, b); };
  if (m_ghost != nullptr && areAlive()) m_ghost->removeOverlappingPair(a, b, dispatcher);
  return areAlive() ? m_table.find(slots) : lbvh::kNullIndex;
}

void* GpuLbvhPairCache::removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b,
                                              btDispatcher* dispatcher) {
  if (!m_proxies.ownBoth(a, b)) return nullptr;
  return removeKnown(a, b, dispatcher);
}

void* GpuLbvhPairCache::removeKnown(btBroadphaseProxy* a, btBroadphaseProxy* b,
                                    btDispatcher* dispatcher) {
  const std::uint32_t pair = m_table.find(slotsOf(a, b));
  return pair == lbvh::kNullIndex ? nullptr : removeAt(pair, dispatcher);
}

void GpuLbvhPairCache::cleanOverlappingPair(btBroadphasePair& pair, btDispatcher* dispatcher) {
  if (pair.m_algorithm == nullptr || dispatcher == nullptr) return;
  // Detaches the algorithm first: a contact-ended callback may move or remove the pair.
  btCollisionAlgorithm* algorithm = std::exchange(pair.m_algorithm, nullptr);
  algorithm->~btCollisionAlgorithm();
  dispatcher->freeCollisionAlgorithm(algorithm);
}

void GpuLbvhPairCache::cleanProxyFromPairs(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  if (!m_proxies.owns(proxy)) return;
  const std::uint32_t slot = static_cast<GpuLbvhProxy*>(proxy)->m_slot;
  // Programs call this after a change of a group, a mask, or the answers of their filter callback.
  m_proxies.filterChanged(static_cast<GpuLbvhProxy*>(proxy));
  m_proxies.askAgain(static_cast<GpuLbvhProxy*>(proxy));
  const GpuLbvhPairTable::PlacesOf places(m_table, slot);
  if (!places.areListed()) {
    for (std::uint32_t pair = 0; pair < m_table.size(); ++pair)
      if (contains(pair, slot)) cleanOverlappingPair(m_table[pair], dispatcher);
    return;
  }
  for (std::size_t i = 0; i < places.size(); ++i)  // a callback may move pairs
    if (contains(places[i], slot)) cleanOverlappingPair(m_table[places[i]], dispatcher);
}

void GpuLbvhPairCache::removeOverlappingPairsContainingProxy(btBroadphaseProxy* proxy,
                                                             btDispatcher* dispatcher) {
  if (!m_proxies.owns(proxy)) return;
  const std::uint32_t slot = static_cast<GpuLbvhProxy*>(proxy)->m_slot;
  m_proxies.filterChanged(static_cast<GpuLbvhProxy*>(proxy));
  m_proxies.askAgain(static_cast<GpuLbvhProxy*>(proxy));
  bool mayBeMore = m_ghost != nullptr;  // callbacks may move pairs, and add pairs of the proxy
  do {
    // Removes the pairs in the same order as a scan from the front. The last pair moves to the
    // index of the removed one. If the moved pair also has this proxy, it is removed next.
    const GpuLbvhPairTable::PlacesOf places(m_table, slot);
    if (!places.areListed()) return removeByScan(slot, dispatcher);
    mayBeMore = mayBeMore && places.size() != 0;
    for (std::size_t begin = 0, end = places.size(); begin < end;) {
      const std::size_t before = m_table.size();
      if (!contains(places[begin], slot)) break;
      const bool lastIsNext = end - begin > 1 && places[end - 1] == before - 1;
      removeAt(places[begin], dispatcher);
      mayBeMore = mayBeMore || m_table.size() + 1 != before;
      if (lastIsNext)
        --end;
      else
        ++begin;
    }
  } while (mayBeMore);
}

void GpuLbvhPairCache::removeByScan(std::uint32_t slot, btDispatcher* dispatcher) {
  for (std::uint32_t pair = 0; pair < m_table.size();)
    if (contains(pair, slot))
      removeAt(pair, dispatcher);
    else
      ++pair;
}

// The callback of processAllOverlappingPairs() usually belongs to the narrow phase. The data that
// it reads for a pair are scattered in memory. Without prefetching, the narrow phase spent up to
// two fifths of its time waiting for them. It skips sleeping pairs, so only pairs that moved are
// prefetched.
void GpuLbvhPairCache::prefetchForNarrowPhase(int at) const {
  const auto ahead = [&](int stages) {
    const int pair = at + 3 * stages;
    return pair < getNumOverlappingPairs() ? &m_table.array()[pair] : nullptr;
  };
  const auto isMoving = [this](const btBroadphasePair& pair) {
    return m_proxies.movedInLastStep(static_cast<const GpuLbvhProxy*>(pair.m_pProxy0)) ||
           m_proxies.movedInLastStep(static_cast<const GpuLbvhProxy*>(pair.m_pProxy1));
  };
  if (const btBroadphasePair* pair = ahead(3)) {
    lbvh::prefetch(pair->m_pProxy0);
    lbvh::prefetch(pair->m_pProxy1);
  }
  if (const btBroadphasePair* pair = ahead(2); pair != nullptr && isMoving(*pair)) {
    lbvh::prefetch(pair->m_algorithm);
    // Clients may be of any type, so they are prefetched but not read.
    lbvh::prefetch(pair->m_pProxy0->m_clientObject, sizeof(btCollisionObject));
    lbvh::prefetch(pair->m_pProxy1->m_clientObject, sizeof(btCollisionObject));
  }
  const btBroadphasePair* pair = ahead(1);
  if (pair != nullptr && isMoving(*pair)) prefetchManifold(*pair);
}

/// Calls the callback, and removes the pair if the callback returns true. The callback may change
/// this cache.
/// @return what the callback returned
bool GpuLbvhPairCache::process(std::uint32_t pair, btOverlapCallback* callback,
                               btDispatcher* dispatcher) {
  const lbvh::Pair slots = m_table.slots(pair);
  const btBroadphaseProxy *a = m_table[pair].m_pProxy0, *b = m_table[pair].m_pProxy1;
  const std::uint32_t last = m_proxies.lastSerial();
  if (!callback->processOverlap(m_table[pair])) return false;
  pair = m_proxies.areFrom(last, a, b) ? m_table.find(slots) : lbvh::kNullIndex;
  if (pair != lbvh::kNullIndex) removeAt(pair, dispatcher);
  return true;
}

void GpuLbvhPairCache::processAllOverlappingPairs(btOverlapCallback* callback,
                                                  btDispatcher* dispatcher) {
  BT_PROFILE("GpuLbvhPairCache::processAllOverlappingPairs");
  const bool prefetches = getNumOverlappingPairs() >= kMinPrefetched;
  for (int i = 0; i < getNumOverlappingPairs();) {
    if (prefetches) prefetchForNarrowPhase(i);
    if (!process(static_cast<std::uint32_t>(i), callback, dispatcher)) ++i;
  }
}

void GpuLbvhPairCache::processAllOverlappingPairs(btOverlapCallback* callback,
                                                  btDispatcher* dispatcher,
                                                  const btDispatcherInfo& info) {
  if (!info.m_deterministicOverlappingPairs)
    return processAllOverlappingPairs(callback, dispatcher);
  BT_PROFILE("GpuLbvhPairCache::processAllOverlappingPairs, sorted");
  std::vector<lbvh::Pair> order;
  try {
    order.reserve(m_table.size());
    for (const std::uint32_t place : m_table.placesIn(Order::descending))
      order.push_back(m_table.slots(place));
  } catch (const std::bad_alloc&) {
    return processAllOverlappingPairs(callback, dispatcher);
  }
  for (const lbvh::Pair slots : order) {
    const std::uint32_t pair = m_table.find(slots);
    if (pair != lbvh::kNullIndex) process(pair, callback, dispatcher);
  }
}

void GpuLbvhPairCache::sortOverlappingPairs(btDispatcher* /*dispatcher*/) {
  try {
    m_table.sort(Order::descending);
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhPairCache: out of memory");
  }
}
