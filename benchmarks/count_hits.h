// SPDX-License-Identifier: Zlib
// Callbacks that count what a query of Bullet's interface visits.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <cstddef>

struct CountBoxes : btBroadphaseAabbCallback {
  bool process(const btBroadphaseProxy*) override { return ++hits != 0; }
  std::size_t hits = 0;
};

/// Counts the objects that a ray may hit. Its members are set as in btCollisionWorld::rayTest.
struct CountRay : btBroadphaseRayCallback {
  explicit CountRay(const btVector3& way) {
    m_lambda_max = way.length();
    const btVector3 direction = way / m_lambda_max;
    for (int axis = 0; axis < 3; ++axis) {
      m_rayDirectionInverse[axis] =
          direction[axis] == 0 ? btScalar(BT_LARGE_FLOAT) : 1 / direction[axis];
      m_signs[axis] = m_rayDirectionInverse[axis] < 0;
    }
  }
  bool process(const btBroadphaseProxy*) override { return ++hits != 0; }
  std::size_t hits = 0;
};
