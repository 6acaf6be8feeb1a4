// SPDX-License-Identifier: Zlib
// Pair caches like those that programs define: their classes are unknown to us, they have their own
// filter rule, and they are compiled without RTTI.
#pragma once

#include <BulletCollision/BroadphaseCollision/btOverlappingPairCache.h>

#include <memory>

namespace strangers {

/// The rule of these caches while they have no filter callback: two objects are a pair if the mask
/// of at least one of them accepts the other's group.
inline bool accepts(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return (a->m_collisionFilterGroup & b->m_collisionFilterMask) != 0 ||
         (b->m_collisionFilterGroup & a->m_collisionFilterMask) != 0;
}

struct Thrown {};

/// Settings that a test passes to a cache, and counts that the cache returns.
struct Talk {
  bool isShut = false;       ///< the cache refuses every pair
  bool returnsNull = false;  ///< a wrapper returns null, even for pairs that it adds
  int addsLeft = 0;          ///< number of additions until a wrapper throws; 0: never
  int adds = 0;              ///< additions so far
  int questions = 0;         ///< calls of a wrapper's needsBroadphaseCollision
  int others = 0;            ///< calls, or orders of arguments, that btDbvtBroadphase never uses
};

/// A cache whose class inherits from one of Bullet's caches.
std::unique_ptr<btOverlappingPairCache> makeDerived(bool isDeferred, Talk& talk);

/// A cache that forwards all calls to another cache, but does not return the filter callback.
std::unique_ptr<btOverlappingPairCache> wrap(btOverlappingPairCache& cache, Talk& talk);

}  // namespace strangers
