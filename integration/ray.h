// SPDX-License-Identifier: Zlib
// A ray of Bullet's, or a box swept along one, against boxes. Not installed.
#pragma once

#include <LinearMath/btVector3.h>

#include "broadphase/ray_test.h"

struct btBroadphaseRayCallback;

/// A ray as btBroadphaseRayCallback describes it.
class GpuLbvhRay {
 public:
  /// @param sweptMin, sweptMax of the box that is swept, relative to the ray; equal: a ray
  GpuLbvhRay(const btVector3& from, const btBroadphaseRayCallback& callback,
             const btVector3& sweptMin, const btVector3& sweptMax);

  /// Whether the ray meets a closed box, touching included. Of boxes with min <= max it accepts all
  /// that Bullet's own test (btRayAabb2) accepts, rounding included. A NaN anywhere and an inverted
  /// box are misses.
  template <class Box>
  bool operator()(const Box& box) const {
    lbvh::RayInterval<btScalar> interval(m_length);
    for (int axis = 0; axis < 3; ++axis) {
      const btScalar lo = btScalar(box.min[axis]) - m_sweptMax[axis] - m_from[axis];
      const btScalar hi = btScalar(box.max[axis]) - m_sweptMin[axis] - m_from[axis];
      if (!interval.cut(lo, hi, m_inverse[axis], m_axes[axis])) return false;
    }
    return interval.isHit();
  }

 private:
  btVector3 m_from, m_inverse, m_sweptMin, m_sweptMax;
  btScalar m_length;
  lbvh::RayAxis m_axes[3];
};
