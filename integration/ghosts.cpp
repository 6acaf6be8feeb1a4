#include "ghosts.h"

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>
#include <BulletCollision/CollisionDispatch/btCollisionObject.h>

#include <algorithm>
#include <new>

void GpuLbvhGhosts::setCallbackIsThere(bool isThere) {
  if (isThere == m_callbackIsThere) return;
  m_callbackIsThere = isThere;
  for (GpuLbvhProxy* ghost : m_ghosts) ghost->m_isGhost = false;
  m_ghosts.clear();
  for (std::uint32_t slot = 0; isThere && slot < m_proxies.boxes().size; ++slot)
    if (m_proxies.at(slot)->m_isAlive) setGhost(m_proxies.at(slot));
}

void GpuLbvhGhosts::setGhost(GpuLbvhProxy* proxy) {
  if (proxy->m_isGhost) return;  // the callback was noticed at its own creation
  const auto* object = static_cast<const btCollisionObject*>(proxy->m_clientObject);
  if (object == nullptr || object->getInternalType() != btCollisionObject::CO_GHOST_OBJECT) return;
  try {
    m_ghosts.push_back(proxy);
    proxy->m_isGhost = true;
  } catch (const std::bad_alloc&) {  // then it waits for the step, as all others do
  }
}

void GpuLbvhGhosts::created(GpuLbvhProxy* proxy, btOverlappingPairCache& cache) {
  if (!m_callbackIsThere) return;
  setGhost(proxy);
  update(proxy, GpuLbvhProxies::kNoBox, cache, nullptr);
}

void GpuLbvhGhosts::moved(GpuLbvhProxy* proxy, const lbvh::Aabb& before,
                          btOverlappingPairCache& cache, btDispatcher* dispatcher) {
  if (m_callbackIsThere) update(proxy, before, cache, dispatcher);
}

void GpuLbvhGhosts::destroyed(GpuLbvhProxy* proxy) {
  if (!proxy->m_isGhost) return;
  proxy->m_isGhost = false;
  m_ghosts.erase(std::find(m_ghosts.begin(), m_ghosts.end(), proxy));
}

/// By slot, so that their order does not depend on where the finder runs.
void GpuLbvhGhosts::findPartners(const GpuLbvhProxy* proxy, const lbvh::Aabb& before) {
  const lbvh::Aabb now = m_proxies.boxes()[proxy->m_slot];
  const auto meets = [&](const auto& bounds) {
    return lbvh::overlap(now, bounds) || lbvh::overlap(before, bounds);
  };
  m_partners.clear();
  if (proxy->m_isGhost) {
    m_queries.queryAsIs(meets, [&](GpuLbvhProxy* other) { m_partners.push_back(other); });
  } else {
    for (GpuLbvhProxy* ghost : m_ghosts)
      if (meets(m_proxies.boxes()[ghost->m_slot])) m_partners.push_back(ghost);
  }
  std::sort(m_partners.begin(), m_partners.end(),
            [](const auto* a, const auto* b) { return a->m_slot < b->m_slot; });
  const std::size_t needed = m_early.size() + m_partners.size();
  if (needed > m_early.capacity()) m_early.reserve(2 * needed);
}

void GpuLbvhGhosts::update(GpuLbvhProxy* proxy, const lbvh::Aabb& before,
                           btOverlappingPairCache& cache, btDispatcher* dispatcher) {
  // The sorted cache neither removes at once nor finds a pair that it has.
  if (cache.hasDeferredRemoval()) return;
  try {
    findPartners(proxy, before);
  } catch (const std::bad_alloc&) {
    return;  // the step makes up for it
  }
  for (GpuLbvhProxy* other : m_partners) {
    if (other == proxy) continue;
    m_early.push_back(lbvh::makePair(proxy->m_slot, other->m_slot));
    if (m_proxies.overlap(proxy, other))
      cache.addOverlappingPair(proxy, other);
    else
      cache.removeOverlappingPair(proxy, other, dispatcher);
  }
}

void GpuLbvhGhosts::settle(const GpuLbvhExactPairs& pairs, btOverlappingPairCache& cache,
                           btDispatcher* dispatcher) {
  for (const lbvh::Pair pair : m_early) {
    GpuLbvhProxy *a = m_proxies.at(pair.first), *b = m_proxies.at(pair.second);
    // Asked again: the callback may have been another, for a while, when the pair was given.
    if (pairs.isPair(pair) && cache.needsBroadphaseCollision(a, b))
      cache.addOverlappingPair(a, b);
    else
      cache.removeOverlappingPair(a, b, dispatcher);
  }
  m_early.clear();
}
