// SPDX-License-Identifier: Zlib
// The pairs in the cache of a world's broad phase, and the objects of their proxies.
#pragma once

#include "scenes/world.h"

inline const btBroadphasePairArray& cachedPairs(World& world) {
  return world.broadphase().getOverlappingPairCache()->getOverlappingPairArray();
}

inline const btCollisionObject& objectOf(const btBroadphaseProxy& proxy) {
  return *static_cast<const btCollisionObject*>(proxy.m_clientObject);
}
