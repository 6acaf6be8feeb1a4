// Unit boxes in a cube, about eleven neighbours each whatever their number.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"
#include "random.h"

inline std::vector<lbvh::Aabb> uniformBoxes(std::uint32_t n, Random& random) {
  const float side = std::cbrt(static_cast<float>(n) * 8 / 11);
  std::vector<lbvh::Aabb> boxes(n);
  for (lbvh::Aabb& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = side * static_cast<float>(random.unit());
      box.max[axis] = box.min[axis] + 1;
    }
  return boxes;
}
