// SPDX-License-Identifier: Zlib
#include "ray.h"

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <cmath>

namespace {

/// Bullet writes BT_LARGE_FLOAT (1e18, with double precision 1e30) for the inverse of a direction's
/// zero and multiplies by it. So such a ray reaches a face that is nearer than the inverse of that.
/// For a ray of no length Bullet writes NaN on all axes; such a ray hits what contains its origin.
lbvh::RayAxis axisOf(btScalar inverse) {
  if (!std::isfinite(inverse)) return lbvh::RayAxis::parallel;
  return btFabs(inverse) < BT_LARGE_FLOAT ? lbvh::RayAxis::oblique : lbvh::RayAxis::nearlyParallel;
}

}  // namespace

GpuLbvhRay::GpuLbvhRay(const btVector3& from, const btBroadphaseRayCallback& callback,
                       const btVector3& sweptMin, const btVector3& sweptMax)
    : m_from(from),
      m_inverse(callback.m_rayDirectionInverse),
      m_sweptMin(sweptMin),
      m_sweptMax(sweptMax),
      m_length(callback.m_lambda_max) {
  for (int axis = 0; axis < 3; ++axis) m_axes[axis] = axisOf(m_inverse[axis]);
}
