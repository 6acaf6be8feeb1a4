// SPDX-License-Identifier: Zlib
// Tests a Bullet ray, or a box swept along it, against boxes. Not installed.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>
#include <LinearMath/btVector3.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "broadphase/ray_test.h"

/// A ray as btBroadphaseRayCallback describes it.
class GpuLbvhRay {
 public:
  /// @param sweptMin, sweptMax corners of the swept box, relative to `from`; both 0: only a ray
  GpuLbvhRay(const btVector3& from, const btBroadphaseRayCallback& callback,
             const btVector3& sweptMin, const btVector3& sweptMax)
      : m_from(from),
        m_inverse(callback.m_rayDirectionInverse),
        m_sweptMin(sweptMin),
        m_sweptMax(sweptMax),
        m_length(callback.m_lambda_max) {
    for (int axis = 0; axis < 3; ++axis) m_axes[axis] = axisOf(m_inverse[axis]);
  }

  /// Whether the ray hits or touches the box. Accepts every box with min <= max that Bullet's own
  /// test (btRayAabb2) accepts, even boxes that it accepts only because of rounding. A NaN
  /// anywhere or an inverted box is a miss.
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

  /// Which of several boxes the ray hits, one bit per box.
  /// @param corners minima of all boxes on each axis, then their maxima
  template <std::size_t kCount>
  std::uint32_t lanes(const float (&corners)[6][kCount]) const {
    lbvh::RayIntervals<btScalar, kCount> intervals(m_length);
    for (int axis = 0; axis < 3; ++axis) {
      btScalar lo[kCount], hi[kCount];
      for (std::size_t i = 0; i < kCount; ++i) {
        lo[i] = btScalar(corners[axis][i]) - m_sweptMax[axis] - m_from[axis];
        hi[i] = btScalar(corners[3 + axis][i]) - m_sweptMin[axis] - m_from[axis];
      }
      intervals.cut(lo, hi, m_inverse[axis], m_axes[axis]);
    }
    return intervals.hits();
  }

 private:
  /// For a zero in the direction, Bullet multiplies by BT_LARGE_FLOAT (1e18; 1e30 with double
  /// precision) instead of the inverse. So such a ray also hits faces whose distance is less than
  /// its length / BT_LARGE_FLOAT. For a ray of length 0 Bullet writes NaN on all axes. Such a ray
  /// hits only boxes that contain its origin.
  static lbvh::RayAxis axisOf(btScalar inverse) {
    if (!std::isfinite(inverse)) return lbvh::RayAxis::parallel;
    return btFabs(inverse) < BT_LARGE_FLOAT ? lbvh::RayAxis::oblique
                                            : lbvh::RayAxis::nearlyParallel;
  }

  btVector3 m_from, m_inverse, m_sweptMin, m_sweptMax;
  btScalar m_length;
  lbvh::RayAxis m_axes[3];
};
