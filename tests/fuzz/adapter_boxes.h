// SPDX-License-Identifier: Zlib
// Boxes and rays of every kind for the adapter's fuzz target, drawn from a fuzzer's bytes. Also
// says which boxes a ray must hit according to Bullet's own test.
#pragma once

#include <btBulletCollisionCommon.h>

#include <cmath>
#include <limits>
#include <set>

#include "bytes.h"

namespace fuzz {

struct Box {
  btVector3 min{0, 0, 0}, max{0, 0, 0};
};

inline bool overlap(const Box& a, const Box& b) {
  bool overlaps = true;
  for (int axis = 0; axis < 3; ++axis)
    overlaps = overlaps && a.min[axis] <= b.max[axis] && b.min[axis] <= a.max[axis];
  return overlaps;
}

/// A point on a grid, so that boxes touch, and planes and rays run along faces.
inline btVector3 drawPoint(Bytes& bytes) {
  const std::uint32_t place = std::uint32_t{bytes.byte()} << 8 | bytes.byte();
  const auto at = [place](int shift) { return btScalar(place >> shift & 31u) * btScalar(0.5); };
  return {at(0), at(5), at(10)};
}

/// In most cases draws a cube or a point. Otherwise draws a flat box, or a box that is infinite,
/// giant, inverted, NaN, far away or arbitrary.
inline Box drawBox(Bytes& bytes) {
  constexpr btScalar inf = std::numeric_limits<btScalar>::infinity();
  constexpr btScalar nan = std::numeric_limits<btScalar>::quiet_NaN();
  const std::uint32_t kind = bytes.byte();
  const btVector3 min = drawPoint(bytes);
  const btScalar side = btScalar(kind % 7) * btScalar(0.5);
  Box box{min, min + btVector3(side, side, side)};
  const int axis = static_cast<int>(kind % 3);
  const auto whole = [](btScalar reach) {
    return Box{btVector3(-reach, -reach, -reach), btVector3(reach, reach, reach)};
  };
  switch (kind < 216 ? 0 : (kind - 216) / 2) {
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
      return {min * btScalar(1 << 28), min * btScalar(1 << 28) + btVector3(side, side, side)};
    case 15:
      return whole(btScalar(std::numeric_limits<float>::max()));
    case 16:  // with double precision the value is between two floats
      box.max[axis] += btScalar(1e-12);
      box.min[axis] -= btScalar(1e-12);
      return box;
    case 17:
    case 18:
    case 19:
      for (int i = 0; i < 3; ++i) box.min[i] = btScalar(bytes.coordinate());
      for (int i = 0; i < 3; ++i) box.max[i] = btScalar(bytes.coordinate());
      return box;
    default:
      return box;
  }
}

/// Whether a box is not inverted, and is small enough that Bullet's own trees stay exact.
inline bool isOrdinary(const Box& box) {
  for (int axis = 0; axis < 3; ++axis)
    if (!(box.min[axis] <= box.max[axis] && std::fabs(box.min[axis]) < btScalar(1e17) &&
          std::fabs(box.max[axis]) < btScalar(1e17)))
      return false;
  return true;
}

/// Whether a box is neither inverted nor infinite.
inline bool isValid(const Box& box) {
  for (int axis = 0; axis < 3; ++axis)
    if (!(box.min[axis] <= box.max[axis] && std::isfinite(box.min[axis]) &&
          std::isfinite(box.max[axis])))
      return false;
  return true;
}

/// A ray or a sweep. Some run along an axis, some have no length.
struct DrawnRay : btBroadphaseRayCallback {
  explicit DrawnRay(Bytes& bytes) : from(drawPoint(bytes)), to(drawPoint(bytes)) {
    const std::uint32_t kind = bytes.below(16), axis = bytes.below(3);
    if (kind < 4) to = from;
    if (kind < 3) to[static_cast<int>(axis)] += btScalar(kind * 5) - btScalar(6);
    if (kind >= 12) {
      sweptMax = drawPoint(bytes) * btScalar(0.125);
      sweptMin = -drawPoint(bytes) * btScalar(0.125);
    }
    const btVector3 way = to - from;
    const btScalar length = way.length();
    direction = way / length;  // NaN if the ray has no length, as in Bullet's own rays
    for (int i = 0; i < 3; ++i) {
      m_rayDirectionInverse[i] =
          direction[i] == 0 ? btScalar(BT_LARGE_FLOAT) : btScalar(1) / direction[i];
      m_signs[i] = m_rayDirectionInverse[i] < 0;
    }
    m_lambda_max = length > 0 ? direction.dot(way) : 0;
    if (kind % 4 == 1) m_lambda_max *= btScalar(bytes.uniform());
  }

  bool process(const btBroadphaseProxy* proxy) override {
    twice |= !proxies.insert(proxy).second;
    return true;
  }

  bool mustHit(const Box& box) const {
    const btVector3 bounds[2] = {box.min - sweptMax, box.max - sweptMin};
    bool inside = true;  // also true within infinite boxes
    for (int axis = 0; axis < 3; ++axis)
      inside &= bounds[0][axis] < from[axis] && from[axis] < bounds[1][axis];
    if (inside) return true;
    btScalar unused = 1;
    return m_lambda_max > 0 && isValid(box) &&
           btRayAabb2(from, m_rayDirectionInverse, m_signs, bounds, unused, 0, m_lambda_max);
  }

  /// False if the box is clearly outside the bounds of the ray. A box with a NaN is never hit.
  bool mayHit(const Box& box) const {
    const btScalar slack = btScalar(0.01);
    const btVector3 end = m_lambda_max > 0 ? from + direction * m_lambda_max : from;
    for (int axis = 0; axis < 3; ++axis) {
      const btScalar low = btMin(from[axis], end[axis]) - slack,
                     high = btMax(from[axis], end[axis]) + slack;
      if (!(box.min[axis] - sweptMax[axis] <= high && box.max[axis] - sweptMin[axis] >= low))
        return false;
    }
    return true;
  }

  btVector3 from, to, direction, sweptMin{0, 0, 0}, sweptMax{0, 0, 0};
  std::set<const btBroadphaseProxy*> proxies;
  bool twice = false;
};

}  // namespace fuzz
