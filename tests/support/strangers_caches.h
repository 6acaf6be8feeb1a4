// SPDX-License-Identifier: Zlib
// Pair caches as programs write them: of classes that nobody else knows, with a rule of their own,
// compiled without RTTI.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <memory>

namespace strangers {

/// The rule of these caches while they have no filter callback: one side's mask is enough.
inline bool accepts(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 ||
         (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
}

struct Thrown {};

/// What a test tells a cache, and what the cache tells the test.
struct Talk {
  bool isShut = false;       ///< the cache refuses every pair
  bool returnsNull = false;  ///< a wrapper returns null, also for pairs that it takes
  int addsLeft = 0;          ///< additions until a wrapper throws; 0: never
  int adds = 0;              ///< additions so far
  int questions = 0;         ///< calls of a wrapper's needsBroadphaseCollision
  int others = 0;            ///< other calls that btDbvtBroadphase does not make
};

/// A cache that inherits from one of Bullet's.
std::unique_ptr<btOverlappingPairCache> makeDerived(bool isDeferred, Talk& talk);

/// A cache that passes all calls on to another one, and keeps the filter callback to itself.
std::unique_ptr<btOverlappingPairCache> wrap(btOverlappingPairCache& cache, Talk& talk);

}  // namespace strangers
