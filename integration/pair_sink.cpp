// SPDX-License-Identifier: Zlib
#include "pair_sink.h"

#include <BulletCollision/BroadphaseCollision/btCollisionAlgorithm.h>
#include <BulletCollision/BroadphaseCollision/btDispatcher.h>

#include <algorithm>
#include <new>
#include <utility>

void GpuLbvhPairSink::deferAlgorithm(btBroadphasePair& pair, const btDispatcher* dispatcher) {
  if (dispatcher != nullptr || pair.m_algorithm == nullptr) return;
  try {
    m_deferred.push_back(pair.m_algorithm);
    pair.m_algorithm = nullptr;
  } catch (const std::bad_alloc&) {
    // then it is never freed, as with Bullet's own broad phases
  }
}

void GpuLbvhPairSink::freeDeferredAlgorithms(btDispatcher* dispatcher) {
  if (dispatcher == nullptr || m_deferred.empty()) return;
  const auto deferred = std::exchange(m_deferred, {});  // a contact-ended callback may remove pairs
  for (btCollisionAlgorithm* algorithm : deferred) {
    algorithm->~btCollisionAlgorithm();
    dispatcher->freeCollisionAlgorithm(algorithm);
  }
}

std::vector<lbvh::Pair> GpuLbvhPairSink::pairs() {
  std::vector<lbvh::Pair> all;
  const btBroadphasePairArray& array = cache().getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i)
    if (m_proxies.ownBoth(array[i].m_pProxy0, array[i].m_pProxy1))
      all.push_back(slotsOf(array[i].m_pProxy0, array[i].m_pProxy1));
  std::sort(all.begin(), all.end());
  return all;
}

// Works on a copy, because the filter may change the cache.
std::vector<lbvh::Pair> GpuLbvhPairSink::pairsToRefuse() {
  std::vector<lbvh::Pair> refused = pairs();
  std::size_t kept = 0;
  for (const lbvh::Pair pair : refused)
    if (m_proxies.stillLives(pair) &&
        !cache().needsBroadphaseCollision(m_proxies.at(pair.first), m_proxies.at(pair.second)))
      refused[kept++] = pair;
  refused.resize(kept);
  return refused;
}
