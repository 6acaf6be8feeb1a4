// Boxes that move at random: unit boxes in a cube, about eleven neighbours each whatever their
// number; each centre moves up to 0.05 a frame and axis.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"
#include "random.h"

class Walk {
 public:
  Walk(std::uint32_t objects, std::uint32_t seed) : random_(seed), boxes_(objects) {
    const float side = std::cbrt(static_cast<float>(objects) * 8 / 11);
    for (lbvh::Aabb& box : boxes_)
      for (int axis = 0; axis < 3; ++axis) {
        box.min[axis] = side * static_cast<float>(random_.unit());
        box.max[axis] = box.min[axis] + 1;
      }
  }

  const std::vector<lbvh::Aabb>& boxes() const { return boxes_; }

  void step() {
    for (lbvh::Aabb& box : boxes_)
      for (int axis = 0; axis < 3; ++axis) {
        const auto step = static_cast<float>(random_.between(btScalar(-0.05), btScalar(0.05)));
        box.min[axis] += step;
        box.max[axis] += step;
      }
  }

 private:
  Random random_;
  std::vector<lbvh::Aabb> boxes_;
};
