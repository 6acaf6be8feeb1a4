// From what a pass over the scene measured to the grid of the Morton codes: where it lies and
// how fine it is. Runs on the host, on a few hundred numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "broadphase/stages/morton.h"

namespace lbvh {

/// Centres of a few hundred ordinary boxes, evenly spread over the indices; an axis an array.
struct CentreSample {
  static constexpr std::size_t kMax = 255;
  std::array<float, kMax> centres[3];
  std::size_t size = 0;
};

inline CentreSample sampleCentres(View<const Aabb> boxes) {
  CentreSample sample;
  const std::size_t tries = std::min(boxes.size, CentreSample::kMax);
  for (std::size_t k = 0; k < tries; ++k) {
    const Aabb& box = boxes[boxes.size * k / tries];
    if (classify(box) != BoxClass::ordinary) continue;
    for (int axis = 0; axis < 3; ++axis) sample.centres[axis][sample.size] = centre(box, axis);
    ++sample.size;
  }
  return sample;
}

/// Narrows [lo, hi] to the middle 80 % of the sample, widened by 8 times its length on both sides.
/// One body that fell out of the world would otherwise put all others into one cell.
inline void dropOutliers(CentreSample& sample, int axis, float& lo, float& hi) {
  if (sample.size < 16) return;
  const auto begin = sample.centres[axis].begin(), end = begin + static_cast<long>(sample.size);
  const auto low = begin + static_cast<long>(sample.size / 10);
  const auto high = end - 1 - static_cast<long>(sample.size / 10);
  std::nth_element(begin, low, end);
  std::nth_element(low, high, end);
  const float length = *high - *low;
  if (!(length > 0)) return;  // most centres agree on this axis: it separates nothing anyway
  lo = std::max(lo, *low - 8 * length);
  hi = std::min(hi, *high + 8 * length);
}

/// The rule for the codes' length: 63 bits where 30 would put many boxes into one cell, that is
/// above 2^20 boxes, or when a cell of the 10-bit grid is longer than the boxes are (their
/// geometric mean, rounded down to a power of two, so that the sum over boxes is exact).
inline int bitsPerAxis(const SceneBounds& scene, float longestSide) {
  if (scene.ordinary > (1u << 20)) return 21;
  const auto meanExponent = scene.exponents / std::max<std::int64_t>(scene.ordinary, 1);
  return exponentOf(longestSide / 1024) > meanExponent ? 21 : 10;
}

inline Grid makeGrid(const SceneBounds& scene, CentreSample sample) {
  Grid grid{};
  float length[3] = {0, 0, 0};
  for (int axis = 0; axis < 3 && scene.ordinary > 0; ++axis) {
    float lo = scene.lo[axis], hi = scene.hi[axis];
    dropOutliers(sample, axis, lo, hi);
    grid.lo[axis] = lo;
    length[axis] = hi - lo;
  }
  const float longest = std::max({length[0], length[1], length[2]});
  grid.bits = bitsPerAxis(scene, longest);
  // Cubic cells: with as many cells on short axes as on long ones, the debris corridor (16 x 12 x
  // 260 m) would be cut into slices first: 7.9 ms a frame instead of 4.2.
  grid.scale = longest > 0 ? static_cast<float>(1 << grid.bits) / longest : 0;
  return grid;
}

}  // namespace lbvh
