#include "pair_cache.h"

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>
#include <BulletCollision/BroadphaseCollision/btDispatcher.h>
#include <LinearMath/btQuickprof.h>

#include <algorithm>
#include <new>

namespace {

bool isOf(const btBroadphasePair& pair, const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return (pair.m_pProxy0 == a && pair.m_pProxy1 == b) ||
         (pair.m_pProxy0 == b && pair.m_pProxy1 == a);
}

bool isOf(const btBroadphasePair& pair, const btBroadphaseProxy* proxy) {
  return pair.m_pProxy0 == proxy || pair.m_pProxy1 == proxy;
}

// As btBroadphasePairSortPredicate, which is no order where ids are not unique.
bool isBefore(const btBroadphasePair& a, const btBroadphasePair& b) {
  if (a.m_pProxy0->m_uniqueId != b.m_pProxy0->m_uniqueId)
    return a.m_pProxy0->m_uniqueId > b.m_pProxy0->m_uniqueId;
  return a.m_pProxy1->m_uniqueId > b.m_pProxy1->m_uniqueId;
}

void fetch(const void* memory) {
#if defined(__GNUC__)
  __builtin_prefetch(memory);
#else
  (void)memory;
#endif
}

// The pairs of a step lie all over the memory, and the narrow phase has emptied the processor's
// caches: fetches in stages, each of what the one before has brought, take a third off removing.
template <int Stages, class FetchAhead, class Do>
void forEachAhead(lbvh::View<const lbvh::Pair> pairs, const GpuLbvhProxies& proxies,
                  const FetchAhead& fetchAhead, const Do& apply) {
  constexpr std::size_t kApart = 6;
  for (std::size_t i = 0; i < pairs.size; ++i) {
    for (int stage = 0; stage < Stages; ++stage) {
      const std::size_t at = i + kApart * static_cast<std::size_t>(Stages - stage);
      if (at >= pairs.size) continue;
      fetchAhead(proxies.at(pairs[at].first), proxies.at(pairs[at].second), stage);
    }
    apply(proxies.at(pairs[i].first), proxies.at(pairs[i].second));
  }
}

}  // namespace

btBroadphaseProxy* GpuLbvhPairCache::proxyAt(std::uint32_t end) const {
  const btBroadphasePair& pair = m_pairs[static_cast<int>(end / 2)];
  return end % 2 == 0 ? pair.m_pProxy0 : pair.m_pProxy1;
}

// The same for (a, b) and (b, a), so that a search need not read the proxies' ids.
std::size_t GpuLbvhPairCache::bucket(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const {
  const std::uint64_t sum = (mixedBits(a) + mixedBits(b)) * 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(sum >> 32) & (m_buckets.size() - 1);
}

std::uint32_t GpuLbvhPairCache::find(const btBroadphaseProxy* a, const btBroadphaseProxy* b) const {
  if (m_buckets.empty()) return kNone;
  std::uint32_t pair = m_buckets[bucket(a, b)];
  while (pair != kNone && !isOf(m_pairs[static_cast<int>(pair)], a, b))
    pair = m_links[pair].inBucket;
  return pair;
}

btBroadphasePair* GpuLbvhPairCache::findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  const std::uint32_t pair = find(a, b);
  return pair == kNone ? nullptr : &m_pairs[static_cast<int>(pair)];
}

bool GpuLbvhPairCache::needsBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const {
  if (m_filter != nullptr) return m_filter->needBroadphaseCollision(a, b);
  return (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 &&
         (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
}

void GpuLbvhPairCache::reserve(std::size_t more) {
  m_ends.reserveTwo();
  const std::size_t size = m_links.size() + more;
  if (size > m_links.capacity()) m_links.reserve(size + size / 4 + 64);
  if (static_cast<int>(size) > m_pairs.capacity())
    m_pairs.reserve(static_cast<int>(m_links.capacity()));
  if (size <= m_buckets.size()) return;
  std::size_t buckets = std::max<std::size_t>(m_buckets.size(), 64);
  while (buckets < size) buckets *= 2;
  std::vector<std::uint32_t>(buckets).swap(m_buckets);
  relinkBuckets();
}

void GpuLbvhPairCache::relinkBuckets() {
  std::fill(m_buckets.begin(), m_buckets.end(), kNone);
  for (std::uint32_t pair = 0; pair < m_links.size(); ++pair) linkInBucket(pair);
}

void GpuLbvhPairCache::linkInBucket(std::uint32_t pair) {
  const btBroadphasePair& p = m_pairs[static_cast<int>(pair)];
  std::uint32_t& head = m_buckets[bucket(p.m_pProxy0, p.m_pProxy1)];
  m_links[pair].inBucket = head;
  head = pair;
}

void GpuLbvhPairCache::link(std::uint32_t pair) {
  linkInBucket(pair);
  for (const std::uint32_t end : {2 * pair, 2 * pair + 1}) {
    std::uint32_t& first = m_ends.at(proxyAt(end));
    next(end) = first;
    previous(end) = kNone;
    if (first != kNone) previous(first) = end;
    first = end;
  }
}

/// What leads to the pair in its bucket.
std::uint32_t& GpuLbvhPairCache::bucketLink(std::uint32_t pair) {
  const btBroadphasePair& p = m_pairs[static_cast<int>(pair)];
  std::uint32_t* at = &m_buckets[bucket(p.m_pProxy0, p.m_pProxy1)];
  while (*at != pair) at = &m_links[*at].inBucket;
  return *at;
}

void GpuLbvhPairCache::unlink(std::uint32_t pair) {
  bucketLink(pair) = m_links[pair].inBucket;
  for (const std::uint32_t end : {2 * pair, 2 * pair + 1}) {
    if (next(end) != kNone) previous(next(end)) = previous(end);
    if (previous(end) != kNone)
      next(previous(end)) = next(end);
    else if (next(end) != kNone)
      m_ends.at(proxyAt(end)) = next(end);
    else
      m_ends.forget(proxyAt(end));
  }
}

/// Fills the place of a pair that was unlinked.
void GpuLbvhPairCache::moveLastTo(std::uint32_t pair) {
  const auto last = static_cast<std::uint32_t>(m_pairs.size() - 1);
  if (last != pair) {
    bucketLink(last) = pair;
    for (const std::uint32_t side : {0u, 1u}) {
      const std::uint32_t from = 2 * last + side, to = 2 * pair + side;
      if (next(from) != kNone) previous(next(from)) = to;
      if (previous(from) != kNone)
        next(previous(from)) = to;
      else
        m_ends.at(proxyAt(from)) = to;
    }
    m_links[pair] = m_links[last];
    m_pairs[static_cast<int>(pair)] = m_pairs[static_cast<int>(last)];
  }
  m_links.pop_back();
  m_pairs.pop_back();
}

btBroadphasePair* GpuLbvhPairCache::add(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  if (!needsBroadphaseCollision(a, b)) return nullptr;
  if (btBroadphasePair* there = findPair(a, b)) return there;
  reserve(1);
  if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
  if (m_ghost != nullptr) m_ghost->addOverlappingPair(a, b);
  m_pairs.push_back(btBroadphasePair(*a, *b));
  m_links.emplace_back();
  link(static_cast<std::uint32_t>(m_pairs.size() - 1));
  return &m_pairs[m_pairs.size() - 1];
}

btBroadphasePair* GpuLbvhPairCache::addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  try {
    return add(a, b);
  } catch (const std::bad_alloc&) {
    btAssert(!"GpuLbvhPairCache: out of memory");
    return nullptr;
  }
}

void GpuLbvhPairCache::fetchForRemoval(const btBroadphaseProxy* a, const btBroadphaseProxy* b,
                                       int stage) const {
  const std::uint32_t& head = m_buckets[bucket(a, b)];
  if (stage == 0) return fetch(&head);
  if (head >= m_links.size()) return;
  const Links& links = m_links[head];
  const btBroadphasePair& pair = m_pairs[static_cast<int>(head)];
  if (stage == 1) {
    fetch(&links);
    fetch(&pair);
    return;
  }
  for (const std::uint32_t end :
       {links.next[0], links.next[1], links.previous[0], links.previous[1]})
    if (end != kNone) fetch(&m_links[end / 2]);
  fetch(pair.m_algorithm);
}

void GpuLbvhPairCache::fetchForAddition(const btBroadphaseProxy* a, const btBroadphaseProxy* b,
                                        int stage) const {
  const std::uint32_t& head = m_buckets[bucket(a, b)];
  if (stage == 0) {
    fetch(&head);
    fetch(b);
    fetch(m_ends.address(b));
    return;
  }
  if (head < m_links.size()) fetch(&m_pairs[static_cast<int>(head)]);
  const std::uint32_t end = m_ends.get(b);
  if (end != kNone) fetch(&m_links[end / 2]);
}

void GpuLbvhPairCache::removeAll(lbvh::View<const lbvh::Pair> pairs, const GpuLbvhProxies& proxies,
                                 btDispatcher* dispatcher) {
  if (m_buckets.empty()) return;
  const auto fetchAhead = [&](const auto* a, const auto* b, int stage) {
    fetchForRemoval(a, b, stage);
  };
  forEachAhead<3>(pairs, proxies, fetchAhead, [&](GpuLbvhProxy* a, GpuLbvhProxy* b) {
    removeOverlappingPair(a, b, dispatcher);
  });
}

void GpuLbvhPairCache::addAll(lbvh::View<const lbvh::Pair> pairs, const GpuLbvhProxies& proxies) {
  if (pairs.empty()) return;
  reserve(pairs.size);
  const auto fetchAhead = [&](const auto* a, const auto* b, int stage) {
    fetchForAddition(a, b, stage);
  };
  forEachAhead<2>(pairs, proxies, fetchAhead, [&](GpuLbvhProxy* a, GpuLbvhProxy* b) { add(a, b); });
}

void* GpuLbvhPairCache::removeAt(std::uint32_t pair, btDispatcher* dispatcher) {
  btBroadphasePair& gone = m_pairs[static_cast<int>(pair)];
  cleanOverlappingPair(gone, dispatcher);
  void* userData = gone.m_internalInfo1;
  if (m_ghost != nullptr) {
    btBroadphaseProxy *a = gone.m_pProxy0, *b = gone.m_pProxy1;
    m_ghost->removeOverlappingPair(a, b, dispatcher);
    pair = find(a, b);  // should the callback have changed this cache
    if (pair == kNone) return userData;
  }
  unlink(pair);
  moveLastTo(pair);
  return userData;
}

void* GpuLbvhPairCache::removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b,
                                              btDispatcher* dispatcher) {
  const std::uint32_t pair = find(a, b);
  return pair == kNone ? nullptr : removeAt(pair, dispatcher);
}

void GpuLbvhPairCache::cleanOverlappingPair(btBroadphasePair& pair, btDispatcher* dispatcher) {
  if (pair.m_algorithm == nullptr || dispatcher == nullptr) return;
  pair.m_algorithm->~btCollisionAlgorithm();
  dispatcher->freeCollisionAlgorithm(pair.m_algorithm);
  pair.m_algorithm = nullptr;
}

/// Into m_gathered, in the array's order; false if there is no memory.
bool GpuLbvhPairCache::gatherPairsOf(const btBroadphaseProxy* proxy) {
  m_gathered.clear();
  try {
    for (std::uint32_t end = m_ends.get(proxy); end != kNone; end = next(end))
      m_gathered.push_back(end / 2);
  } catch (const std::bad_alloc&) {
    return false;
  }
  std::sort(m_gathered.begin(), m_gathered.end());
  return true;
}

void GpuLbvhPairCache::cleanProxyFromPairs(btBroadphaseProxy* proxy, btDispatcher* dispatcher) {
  if (gatherPairsOf(proxy)) {
    for (const std::uint32_t pair : m_gathered)
      cleanOverlappingPair(m_pairs[static_cast<int>(pair)], dispatcher);
    return;
  }
  for (std::uint32_t end = m_ends.get(proxy); end != kNone; end = next(end))
    cleanOverlappingPair(m_pairs[static_cast<int>(end / 2)], dispatcher);
}

void GpuLbvhPairCache::removeOverlappingPairsContainingProxy(btBroadphaseProxy* proxy,
                                                             btDispatcher* dispatcher) {
  // As a scan of the array would: a removed pair's place is taken by the last one, which may be
  // the proxy's as well.
  if (gatherPairsOf(proxy)) {
    std::size_t begin = 0, end = m_gathered.size();
    while (begin < end) {
      const std::uint32_t pair = m_gathered[begin];
      const auto last = static_cast<std::uint32_t>(m_pairs.size() - 1);
      if (pair > last || !isOf(m_pairs[static_cast<int>(pair)], proxy)) break;
      const bool lastIsNext = end - begin > 1 && m_gathered[end - 1] == last;
      removeAt(pair, dispatcher);
      if (lastIsNext)
        --end;
      else
        ++begin;
    }
  }
  // What is left: without memory all; none else, unless a ghost callback added some.
  while (m_ends.get(proxy) != kNone) removeAt(m_ends.get(proxy) / 2, dispatcher);
}

void GpuLbvhPairCache::processAllOverlappingPairs(btOverlapCallback* callback,
                                                  btDispatcher* dispatcher) {
  BT_PROFILE("GpuLbvhPairCache::processAllOverlappingPairs");
  for (int i = 0; i < m_pairs.size();) {
    btBroadphaseProxy *a = m_pairs[i].m_pProxy0, *b = m_pairs[i].m_pProxy1;
    if (callback->processOverlap(m_pairs[i]))
      removeOverlappingPair(a, b, dispatcher);
    else
      ++i;
  }
}

void GpuLbvhPairCache::processAllOverlappingPairs(btOverlapCallback* callback,
                                                  btDispatcher* dispatcher,
                                                  const btDispatcherInfo& info) {
  if (!info.m_deterministicOverlappingPairs)
    return processAllOverlappingPairs(callback, dispatcher);
  BT_PROFILE("GpuLbvhPairCache::processAllOverlappingPairs, sorted");
  std::vector<btBroadphasePair> order;
  try {
    order.assign(first(), first() + m_pairs.size());
  } catch (const std::bad_alloc&) {
    return processAllOverlappingPairs(callback, dispatcher);
  }
  std::stable_sort(order.begin(), order.end(), isBefore);
  for (const btBroadphasePair& wanted : order) {
    btBroadphasePair* pair = findPair(wanted.m_pProxy0, wanted.m_pProxy1);
    if (pair != nullptr && callback->processOverlap(*pair))
      removeOverlappingPair(wanted.m_pProxy0, wanted.m_pProxy1, dispatcher);
  }
}

void GpuLbvhPairCache::sortOverlappingPairs(btDispatcher* /*dispatcher*/) {
  std::stable_sort(first(), first() + m_pairs.size(), isBefore);
  for (int i = 0; i < m_pairs.size(); ++i) {
    m_ends.at(m_pairs[i].m_pProxy0) = kNone;
    m_ends.at(m_pairs[i].m_pProxy1) = kNone;
  }
  std::fill(m_buckets.begin(), m_buckets.end(), kNone);
  for (std::uint32_t pair = 0; pair < m_links.size(); ++pair) link(pair);
}
