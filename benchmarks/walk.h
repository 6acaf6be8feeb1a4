// SPDX-License-Identifier: Zlib
// A random walk of boxes in a cube. Sides are from 0.5 to 1.5, and each box has about eleven
// neighbours, independent of the number of boxes. In each frame all boxes move, or an evenly spread
// share of them. Their centres stay within the cube. Moves are approximately normally distributed,
// with a standard deviation of 0.05 (or another step) per frame and axis.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "broadphase/types.h"
#include "support/random.h"

inline float between(Random& random, float low, float high) {
  return static_cast<float>(random.between(btScalar(low), btScalar(high)));
}

class Walk {
 public:
  static constexpr float kStep = 0.05f;

  Walk(std::uint32_t objects, std::uint32_t seed, double moving = 1, float step = kStep)
      : random_(seed),
        moving_(moving),
        // The sum of four uniform numbers in [-most_, most_] has the standard deviation `step`.
        most_(0.0433f * (step / kStep)),
        side_(std::max(0.1f, 0.9f * std::cbrt(static_cast<float>(objects)) - 0.54f)),
        boxes_(objects) {
    for (lbvh::Aabb& box : boxes_)
      for (int axis = 0; axis < 3; ++axis) {
        const float half = between(random_, 0.25f, 0.75f);
        place(box, axis, between(random_, 0, side_), half);
      }
  }

  const std::vector<lbvh::Aabb>& boxes() const { return boxes_; }

  void step() {
    double movers = 0;
    for (lbvh::Aabb& box : boxes_) {
      const double before = std::floor(movers);
      movers += moving_;
      if (std::floor(movers) == before) continue;
      for (int axis = 0; axis < 3; ++axis) {
        const float half = (box.max[axis] - box.min[axis]) / 2;
        float centre = box.min[axis] + half;
        for (int k = 0; k < 4; ++k) centre += between(random_, -most_, most_);
        if (centre > side_) centre = 2 * side_ - centre;
        place(box, axis, std::abs(centre), half);
      }
    }
  }

 private:
  static void place(lbvh::Aabb& box, int axis, float centre, float half) {
    box.min[axis] = centre - half;
    box.max[axis] = centre + half;
  }

  Random random_;
  double moving_;
  float most_;
  float side_;
  std::vector<lbvh::Aabb> boxes_;
};
