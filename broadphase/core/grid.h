// SPDX-License-Identifier: Zlib
// Runs between stages 1 and 2. From the measurements of stage 1, it chooses the position and the
// cell size of the grid for the codes.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "broadphase/core/morton.h"
#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// A kernel with one thread. Begins the header of a step (StepHeader::begin), and writes the grid.
struct ChooseGrid {
  View<const Aabb> boxes;
  const StepArguments* arguments;  ///< null: there is no padding, and there are no old pairs
  StepHeader* header;
  bool hasLargeLayer = true;  ///< whether large boxes come after the others in the order

  GPULBVH_HD void operator()(std::uint32_t) const {
    header->begin(arguments != nullptr ? *arguments : StepArguments{boxes.size(), 0});
    const SceneBounds& scene = header->scene;
    Grid grid{};
    float hi[3] = {0, 0, 0};
    for (int axis = 0; axis < 3 && scene.measured > 0; ++axis) {
      grid.lo[axis] = scene.lo[axis];
      hi[axis] = scene.hi[axis];
    }
    // If outliers are dropped, they all share the outer cells of the narrower grid. So they are
    // dropped only if even the finest cells (2^21 per axis) would be longer than four boxes.
    if (isTooCoarse(scene, longestSide(grid.lo, hi) / (1 << 23))) dropOutliers(grid.lo, hi);
    const float longest = longestSide(grid.lo, hi);
    // Cells are cubes. With equally many cells on all axes, the order would first cut the debris
    // corridor (16 x 12 x 260 m) into slices. A frame of this scene would take 7.9 ms instead of
    // 4.2.
    grid.perLength = longest > 0 ? 1 / longest : 0;
    grid.bits = 10;
    for (const int finer : {14, 21})
      if (isTooCoarse(scene, longest / static_cast<float>(1 << grid.bits))) grid.bits = finer;
    // The inverse of a denormal length can be infinite. Then it is replaced by the largest finite
    // number. With codes of 21 bits per axis, each denormal coordinate still has its own cell.
    if (grid.perLength > kMaxPerLength) {
      grid.perLength = kMaxPerLength;
      grid.bits = 21;
    }
    if (hasLargeLayer && scene.measured > 0)
      grid.largeFrom = lengthOf(meanExponent(scene) + kLargeBits);
    header->grid = grid;
  }

  /// A box is large if its longest side is at least about 8 to 16 times the geometric mean of all
  /// longest sides. The factor varies, because the mean of the exponents is rounded to an integer.
  static constexpr int kLargeBits = 4;

  static constexpr float kMaxPerLength = 3.40282347e+38f;

  /// Narrows the grid, because otherwise one body that fell out of the world could put all others
  /// into one cell. Takes a sample of 31 boxes at evenly spaced indices. On each axis it ignores
  /// the lowest and the highest centre of the sample. The grid becomes the bounds of the other
  /// centres, extended on all sides by 8 times their longest side.
  GPULBVH_HD void dropOutliers(float (&lo)[3], float (&hi)[3]) const {
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

  GPULBVH_HD static float least(float a, float b) { return b < a ? b : a; }
  GPULBVH_HD static float most(float a, float b) { return b > a ? b : a; }

  /// Whether cells of this length are longer than the boxes. This decides the length of the codes,
  /// and whether outliers are dropped. The length of the boxes is a geometric mean, computed from
  /// exponents, because a sum of exponents is exact. The number of boxes is not considered, because
  /// nearly all boxes that share a small cell overlap.
  GPULBVH_HD static bool isTooCoarse(const SceneBounds& scene, float cell) {
    return scene.measured != 0 && exponentOf(cell) > meanExponent(scene);
  }

  /// @param scene must have measured boxes
  GPULBVH_HD static int meanExponent(const SceneBounds& scene) {
    return static_cast<int>(scene.exponents / static_cast<std::int64_t>(scene.measured));
  }
};

}  // namespace lbvh
