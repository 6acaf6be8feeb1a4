// Between stages 1 and 2: from what a pass over the scene measured to the grid of the Morton codes,
// where it lies and how fine it is.
#pragma once

#include <cstdint>

#include "broadphase/stages/morton.h"
#include "broadphase/stages/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::uint32_t kSamples = 31;

LBVH_HD inline float longestSide(const float (&lo)[3], const float (&hi)[3]) {
  float longest = 0;
  for (int axis = 0; axis < 3; ++axis)
    longest = hi[axis] - lo[axis] > longest ? hi[axis] - lo[axis] : longest;
  return longest;
}

/// The rule for the length of the codes and for outliers: a cell should not be longer than the
/// boxes are (their geometric mean, by exponents, so that the sum over boxes is exact).
LBVH_HD inline bool isTooCoarse(const SceneBounds& scene, float cell) {
  if (scene.measured == 0) return false;
  return exponentOf(cell) > scene.exponents / static_cast<std::int64_t>(scene.measured);
}

/// Whether some centres lie so far out that even the finest grid over all would be too coarse. Four
/// box lengths are not yet: those outside the grid share its outer cells.
LBVH_HD inline bool isOutlying(const SceneBounds& scene) {
  return isTooCoarse(scene, longestSide(scene.lo, scene.hi) / (1 << 23));
}

/// Element i is axis i / kSamples of sample i % kSamples: of the boxes at evenly spread indices. It
/// finds its own rank among the ordinary samples, and if it is the second smallest or largest, or
/// so, writes it down. Nothing to do where no centre lies far out.
struct SampleCentres {
  View<const Aabb> boxes;
  StepHeader* header;

  static constexpr std::uint32_t kElements = 3 * kSamples;

  LBVH_HD void operator()(std::uint32_t i) const {
    if (!isOutlying(header->scene)) return;
    const int axis = static_cast<int>(i / kSamples);
    const std::uint32_t samples =
        boxes.size < kSamples ? static_cast<std::uint32_t>(boxes.size) : kSamples;
    const std::uint32_t k = i % kSamples;
    if (k >= samples || !isSample(sample(k, samples))) return;
    const float mine = centre(sample(k, samples), axis);
    std::uint32_t rank = 0, count = 0;
    for (std::uint32_t other = 0; other < samples; ++other) {
      const Aabb& box = sample(other, samples);
      if (!isSample(box)) continue;
      const float x = centre(box, axis);
      rank += x < mine || (x == mine && other < k);
      ++count;
    }
    if (rank == count / 16) header->middle[0][axis] = mine;
    if (rank == count - 1 - count / 16) header->middle[1][axis] = mine;
    if (axis == 0 && rank == 0) header->sampled = count;
  }

  LBVH_HD static bool isSample(const Aabb& box) {
    return classify(box) == BoxClass::ordinary && !isInverted(box);
  }

  LBVH_HD const Aabb& sample(std::uint32_t k, std::uint32_t samples) const {
    return boxes[boxes.size * k / samples];
  }
};

/// One element: nothing measured yet.
struct ResetHeader {
  StepHeader* header;
  LBVH_HD void operator()(std::uint32_t) const { *header = StepHeader{}; }
};

/// One element: writes the grid.
struct ChooseGrid {
  StepHeader* header;

  LBVH_HD void operator()(std::uint32_t) const {
    const SceneBounds& scene = header->scene;
    Grid grid{};
    float hi[3] = {0, 0, 0};
    for (int axis = 0; axis < 3 && scene.measured > 0; ++axis) {
      grid.lo[axis] = scene.lo[axis];
      hi[axis] = scene.hi[axis];
    }
    if (isOutlying(scene)) dropOutliers(grid.lo, hi);
    const float longest = longestSide(grid.lo, hi);
    // Cubic cells: with as many cells on short axes as on long ones, the debris corridor (16 x 12 x
    // 260 m) would be cut into slices first: 7.9 ms a frame instead of 4.2.
    grid.perLength = longest > 0 ? 1 / longest : 0;
    grid.bits = scene.ordinary > (1u << 20) || isTooCoarse(scene, longest / (1 << 10)) ? 21 : 10;
    header->grid = grid;
  }

  /// Narrows the grid to the sample without its extremes, widened on all sides by 8 times its
  /// longest side. One body that fell out of the world would otherwise put all others into one
  /// cell.
  LBVH_HD void dropOutliers(float (&lo)[3], float (&hi)[3]) const {
    const auto& middle = header->middle;
    const float reach = 8 * longestSide(middle[0], middle[1]);
    if (header->sampled < 16 || !(reach > 0)) return;
    for (int axis = 0; axis < 3; ++axis) {
      lo[axis] = middle[0][axis] - reach > lo[axis] ? middle[0][axis] - reach : lo[axis];
      hi[axis] = middle[1][axis] + reach < hi[axis] ? middle[1][axis] + reach : hi[axis];
    }
  }
};

}  // namespace lbvh
