#include "pair_sink.h"

#include <algorithm>

bool GpuLbvhPairSink::add(lbvh::View<const lbvh::Pair> pairs) {
  if (isOwn()) {
    m_own.addAll(pairs);
    return true;
  }
  bool areAll = true;
  for (const lbvh::Pair pair : pairs)
    if (m_proxies.stillLives(pair))
      areAll = add(m_proxies.at(pair.first), m_proxies.at(pair.second)) && areAll;
  return areAll;
}

bool GpuLbvhPairSink::add(GpuLbvhProxy* a, GpuLbvhProxy* b) {
  if (isOwn()) {
    m_own.add(a, b);
    return true;
  }
  return !isOfOthers(m_cache.addOverlappingPair(a, b), a);
}

void GpuLbvhPairSink::remove(lbvh::View<const lbvh::Pair> pairs, btDispatcher* dispatcher) {
  if (isOwn()) return m_own.removeAll(pairs, dispatcher);
  if (m_cache.hasDeferredRemoval()) return removeDeferred(pairs, dispatcher);
  for (const lbvh::Pair pair : pairs)
    if (m_proxies.stillLives(pair))
      remove(m_proxies.at(pair.first), m_proxies.at(pair.second), dispatcher);
}

void GpuLbvhPairSink::remove(GpuLbvhProxy* a, GpuLbvhProxy* b, btDispatcher* dispatcher) {
  if (isOwn())
    m_own.remove(a, b, dispatcher);
  else if (!isOfOthers(m_cache.findPair(a, b), a))
    m_cache.removeOverlappingPair(a, b, dispatcher);
}

// btSortedOverlappingPairCache removes nothing when asked to: its owner edits the array.
void GpuLbvhPairSink::removeDeferred(lbvh::View<const lbvh::Pair> gone, btDispatcher* dispatcher) {
  if (gone.empty()) return;
  btBroadphasePairArray& pairs = m_cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size();) {
    btBroadphasePair pair = pairs[i];
    const bool isOurs = m_proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1);
    if (!isOurs ||
        !std::binary_search(gone.begin(), gone.end(), slotsOf(pair.m_pProxy0, pair.m_pProxy1))) {
      ++i;
      continue;
    }
    pairs.swap(i, pairs.size() - 1);
    pairs.pop_back();
    const int left = pairs.size();
    m_cache.cleanOverlappingPair(pair, dispatcher);
    if (pairs.size() != left) i = 0;  // a callback of a contact's end moved pairs
  }
}

void GpuLbvhPairSink::removeDoomed(btDispatcher* dispatcher) {
  struct Doomed : btOverlapCallback {
    explicit Doomed(const GpuLbvhProxies& p) : proxies(p) {}
    bool processOverlap(btBroadphasePair& pair) override {
      return proxies.ownBoth(pair.m_pProxy0, pair.m_pProxy1) &&
             (static_cast<GpuLbvhProxy*>(pair.m_pProxy0)->m_isDoomed ||
              static_cast<GpuLbvhProxy*>(pair.m_pProxy1)->m_isDoomed);
    }
    const GpuLbvhProxies& proxies;
  } doomed(m_proxies);
  m_cache.processAllOverlappingPairs(&doomed, dispatcher);
}

std::vector<lbvh::Pair> GpuLbvhPairSink::pairs() const {
  std::vector<lbvh::Pair> all;
  const btBroadphasePairArray& array = m_cache.getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i)
    if (m_proxies.ownBoth(array[i].m_pProxy0, array[i].m_pProxy1))
      all.push_back(slotsOf(array[i].m_pProxy0, array[i].m_pProxy1));
  std::sort(all.begin(), all.end());
  return all;
}

// From a copy, because the filter may change the cache.
std::vector<lbvh::Pair> GpuLbvhPairSink::refused() const {
  std::vector<lbvh::Pair> refused = pairs();
  std::size_t kept = 0;
  for (const lbvh::Pair pair : refused)
    if (m_proxies.stillLives(pair) &&
        !m_cache.needsBroadphaseCollision(m_proxies.at(pair.first), m_proxies.at(pair.second)))
      refused[kept++] = pair;
  refused.resize(kept);
  return refused;
}
