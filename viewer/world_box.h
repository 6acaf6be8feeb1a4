// SPDX-License-Identifier: Zlib
// The box of an object in a world's broad phase, in Bullet's precision.
#pragma once

#include "scenes/world.h"

struct WorldBox {
  btVector3 low{0, 0, 0}, high{0, 0, 0};

  btVector3 centre() const { return (low + high) / 2; }
  /// Whether the box's diagonal is shorter than 1000 km. This excludes planes, infinite boxes and
  /// NaN.
  bool isFinite() const { return (high - low).length2() < btScalar(1e12); }
};

inline WorldBox boxOf(World& world, const btCollisionObject& object) {
  WorldBox box;
  // getAabb does not change its proxy, but takes it as a non-const pointer.
  auto* proxy = const_cast<btBroadphaseProxy*>(object.getBroadphaseHandle());
  world.broadphase().getAabb(proxy, box.low, box.high);
  return box;
}
