// SPDX-License-Identifier: Zlib
// Between stages 1 and 2: chooses the grid of the codes, where it lies and how fine it is, from
// what a pass over the scene measured.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "broadphase/core/morton.h"
#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// One element: begins the header of a step, and writes the grid into it.
struct ChooseGrid {
  View<const Aabb> boxes;
  const StepArguments* arguments;  ///< null: all boxes count, and there are no old pairs
  StepHeader* header;

  LBVH_HD void operator()(std::uint32_t) const {
    header->arguments = arguments != nullptr ? *arguments : StepArguments{boxes.size, 0};
    header->pairs = 0;
    header->delta = DeltaCount{};
    header->extents = header->looks = 0;
    const SceneBounds& scene = header->scene;
    Grid grid{};
    float hi[3] = {0, 0, 0};
    for (int axis = 0; axis < 3 && scene.measured > 0; ++axis) {
      grid.lo[axis] = scene.lo[axis];
      hi[axis] = scene.hi[axis];
    }
    // Four box lengths are not too coarse yet, and those outside the grid share its outer cells.
    if (isTooCoarse(scene, longestSide(grid.lo, hi) / (1 << 23))) dropOutliers(grid.lo, hi);
    const float longest = longestSide(grid.lo, hi);
    // Cells are cubes. With as many cells on short axes as on long ones, the debris corridor (16 x
    // 12 x 260 m) would be cut into slices first, and take 7.9 ms a frame instead of 4.2.
    grid.perLength = longest > 0 ? 1 / longest : 0;
    grid.bits = 10;
    for (const int finer : {14, 21})
      if (isTooCoarse(scene, longest / static_cast<float>(1 << grid.bits))) grid.bits = finer;
    // The inverse of a denormal length is infinite. With 21 bits the greatest finite number gives
    // each denormal coordinate a cell of its own.
    if (grid.perLength > kMostPerLength) {
      grid.perLength = kMostPerLength;
      grid.bits = 21;
    }
    header->grid = grid;
  }

  static constexpr float kMostPerLength = 3.40282347e+38f;

  LBVH_HD static float longestSide(const float (&lo)[3], const float (&hi)[3]) {
    float longest = 0;
    for (int axis = 0; axis < 3; ++axis)
      longest = hi[axis] - lo[axis] > longest ? hi[axis] - lo[axis] : longest;
    return longest;
  }

  /// Narrows the grid, because one body that fell out of the world would otherwise put all others
  /// into one cell. It takes 31 boxes at evenly spread indices, leaves out the lowest and the
  /// highest centre on each axis, and widens the rest on all sides by 8 times its longest side.
  LBVH_HD void dropOutliers(float (&lo)[3], float (&hi)[3]) const {
    const std::uint64_t n = header->arguments.boxes, samples = n < 31 ? n : 31;
    float lowest[3], low[3], high[3], highest[3];
    for (int axis = 0; axis < 3; ++axis) {
      lowest[axis] = low[axis] = SceneBounds::kFar;
      highest[axis] = high[axis] = -SceneBounds::kFar;
    }
    int count = 0;
    for (std::uint64_t k = 0; k < samples; ++k) {
      const Aabb& box = boxes[static_cast<std::size_t>(n * k / samples)];
      if (classify(box) != BoxClass::ordinary || isInverted(box)) continue;
      ++count;
      for (int axis = 0; axis < 3; ++axis) {
        const float x = centre(box, axis);
        low[axis] = least(low[axis], most(lowest[axis], x));
        lowest[axis] = least(lowest[axis], x);
        high[axis] = most(high[axis], least(highest[axis], x));
        highest[axis] = most(highest[axis], x);
      }
    }
    const float reach = 8 * longestSide(low, high);
    if (count < 16 || !(reach > 0)) return;
    for (int axis = 0; axis < 3; ++axis) {
      lo[axis] = most(lo[axis], low[axis] - reach);
      hi[axis] = least(hi[axis], high[axis] + reach);
    }
  }

  LBVH_HD static float least(float a, float b) { return b < a ? b : a; }
  LBVH_HD static float most(float a, float b) { return b > a ? b : a; }

  /// The rule for the length of the codes and for outliers: a cell should not be longer than the
  /// boxes. Their length is the geometric mean, by exponents, so that the sum is exact. How many
  /// boxes there are does not matter: those that share a cell then nearly all overlap.
  LBVH_HD static bool isTooCoarse(const SceneBounds& scene, float cell) {
    if (scene.measured == 0) return false;
    return exponentOf(cell) > scene.exponents / static_cast<std::int64_t>(scene.measured);
  }
};

}  // namespace lbvh
