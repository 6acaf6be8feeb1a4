// SPDX-License-Identifier: Zlib
// An object's box as the world's broad phase has it, in Bullet's precision. Does not compute one.
#pragma once

#include "scenes/world.h"

struct WorldBox {
  btVector3 low{0, 0, 0}, high{0, 0, 0};

  btVector3 centre() const { return (low + high) / 2; }
  /// Whether its diagonal is shorter than 1000 km: not a plane, not infinite, not NaN.
  bool isFinite() const { return (high - low).length2() < btScalar(1e12); }
};

inline WorldBox boxOf(World& world, const btCollisionObject& object) {
  WorldBox box;
  // getAabb does not change its proxy, but says so only of the broad phase.
  auto* proxy = const_cast<btBroadphaseProxy*>(object.getBroadphaseHandle());
  world.broadphase().getAabb(proxy, box.low, box.high);
  return box;
}
