// Boxes and rays of every kind, kind ones and nasty ones, for adapter_soak; and what a ray has to
// hit, by Bullet's own test.
#pragma once

#include <btBulletCollisionCommon.h>

#include <cmath>
#include <limits>
#include <set>

#include "support.h"

using lbvh::test::Random;

struct Box {
  btVector3 min{0, 0, 0}, max{0, 0, 0};
};

inline btVector3 soakPoint(Random& random) {
  return {random.uniform(0, 12), random.uniform(0, 12), random.uniform(0, 12)};
}

/// Mostly ordinary; else a point, a sheet, infinite, giant, inverted, NaN, or far out.
/// Coordinates are floats also for double-precision Bullet.
inline Box soakBox(Random& random) {
  constexpr btScalar inf = std::numeric_limits<btScalar>::infinity();
  constexpr btScalar nan = std::numeric_limits<btScalar>::quiet_NaN();
  const btVector3 min = soakPoint(random),
                  size(random.uniform(0, 2), random.uniform(0, 2), random.uniform(0, 2));
  Box box{min, min + size};
  const int axis = static_cast<int>(random.below(3));
  const auto whole = [](btScalar reach) {
    return Box{btVector3(-reach, -reach, -reach), btVector3(reach, reach, reach)};
  };
  switch (random.below(100)) {
    case 0:
      return {min, min};
    case 1:
      box.max[axis] = box.min[axis];
      return box;
    case 2:
      return whole(btScalar(1e18f));
    case 3:
      return whole(btScalar(1e30f));
    case 4:
      return whole(inf);
    case 5:
      box.max[axis] = inf;
      return box;
    case 6:
      box.min[axis] = -inf;
      return box;
    case 7:
      box.min[axis] = nan;
      return box;
    case 8:
      box.max[axis] = nan;
      return box;
    case 9:
      return {btVector3(nan, nan, nan), btVector3(nan, nan, nan)};
    case 10:
      std::swap(box.min[axis], box.max[axis]);
      return box;
    case 11:
      return {whole(inf).max, whole(inf).min};
    case 12:
      return {whole(btScalar(1e18f)).max, whole(btScalar(1e18f)).min};
    case 13:
      box.min[axis] = -btScalar(3e9f);
      return box;
    case 14:
      return {min * btScalar(1 << 28), min * btScalar(1 << 28) + size};
    case 15:
      return whole(btScalar(std::numeric_limits<float>::max()));
    default:
      return box;
  }
}

inline bool isOrdinary(const btBroadphaseProxy& proxy) {
  for (int axis = 0; axis < 3; ++axis)
    if (!(proxy.m_aabbMin[axis] <= proxy.m_aabbMax[axis] &&
          std::fabs(proxy.m_aabbMin[axis]) < btScalar(1e17) &&
          std::fabs(proxy.m_aabbMax[axis]) < btScalar(1e17)))
      return false;
  return true;
}

/// A ray or a sweep: some short, some along an axis, some of no length.
struct SoakRay : btBroadphaseRayCallback {
  explicit SoakRay(Random& random) : from(soakPoint(random)), to(soakPoint(random)) {
    switch (random.below(6)) {
      case 0:
        to = from;
        break;
      case 1:
        to = from;
        to[static_cast<int>(random.below(3))] += random.uniform(-9, 9);
        break;
      default:
        break;
    }
    if (random.below(2) == 0) {
      sweptMax = soakPoint(random) * btScalar(0.1);
      sweptMin = -soakPoint(random) * btScalar(0.1);
    }
    const btVector3 way = to - from;
    const btScalar length = way.length();
    direction = way / length;  // NaN for no length, as Bullet's own is
    for (int axis = 0; axis < 3; ++axis) {
      m_rayDirectionInverse[axis] =
          direction[axis] == 0 ? btScalar(BT_LARGE_FLOAT) : btScalar(1) / direction[axis];
      m_signs[axis] = m_rayDirectionInverse[axis] < 0;
    }
    m_lambda_max = length > 0 ? direction.dot(way) : 0;
    if (random.below(4) == 0) m_lambda_max *= random.uniform();
  }

  bool process(const btBroadphaseProxy* proxy) override {
    twice |= !proxies.insert(proxy).second;
    return true;
  }

  bool mustHit(const btBroadphaseProxy& proxy) const {
    const btVector3 bounds[2] = {proxy.m_aabbMin - sweptMax, proxy.m_aabbMax - sweptMin};
    bool inside = true;  // also of what is infinite
    for (int axis = 0; axis < 3; ++axis)
      inside &= bounds[0][axis] < from[axis] && from[axis] < bounds[1][axis];
    if (inside) return true;
    btScalar unused = 1;
    return m_lambda_max > 0 && isOrdinary(proxy) &&
           btRayAabb2(from, m_rayDirectionInverse, m_signs, bounds, unused, 0, m_lambda_max);
  }

  /// False for what is clearly beside the box of the way; a NaN is never hit.
  bool mayHit(const btBroadphaseProxy& proxy) const {
    const btScalar slack = btScalar(0.01);
    const btVector3 end = m_lambda_max > 0 ? from + direction * m_lambda_max : from;
    for (int axis = 0; axis < 3; ++axis) {
      const btScalar low = btMin(from[axis], end[axis]) - slack,
                     high = btMax(from[axis], end[axis]) + slack;
      if (!(proxy.m_aabbMin[axis] - sweptMax[axis] <= high &&
            proxy.m_aabbMax[axis] - sweptMin[axis] >= low))
        return false;
    }
    return true;
  }

  btVector3 from, to, direction, sweptMin{0, 0, 0}, sweptMax{0, 0, 0};
  std::set<const btBroadphaseProxy*> proxies;
  bool twice = false;
};
