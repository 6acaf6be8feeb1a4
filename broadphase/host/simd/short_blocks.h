// SPDX-License-Identifier: Zlib
// Stores the boxes of leaf blocks in 16-bit integers, for searches by rank. A test of one box
// against sixteen boxes then takes half as long. Corners are rounded to steps of a grid, which
// keeps their order. So the sign of a difference tells whether boxes are apart. If a difference is
// 0, the boxes themselves are tested.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/core/grid.h"
#include "broadphase/core/step_header.h"
#include "broadphase/host/block_tree.h"

namespace lbvh {

/// On each axis the step of a corner x is (x - lo) * perStep - kHalf, limited to +-kMax.
struct ShortGrid {
  static constexpr float kHalf = 32500, kMax = 32767;

  float lo[3], perStep[3];

  /// A grid around the centres of a scene's boxes. It has a margin of a tenth of their extent on
  /// each side, because boxes may move. Corners outside the grid get the first or the last step.
  static ShortGrid around(const SceneBounds& scene) {
    ShortGrid grid{};
    for (int axis = 0; axis < 3; ++axis) {
      const float length = scene.measured > 0 ? scene.hi[axis] - scene.lo[axis] : 0;
      grid.lo[axis] = scene.measured > 0 ? scene.lo[axis] - 0.1f * length : 0;
      // Must be positive and finite, so that an infinite corner gets the last step.
      grid.perStep[axis] = 2 * kHalf / std::max(1.2f * length, kShortest);
    }
    return grid;
  }

  /// Whether the steps are short enough that few corners are rounded to the same step.
  bool isFine(const SceneBounds& scene) const {
    constexpr float kSteps = 128;  // with 32, some tests would stay undecided
    const float longest = 1 / std::min({perStep[0], perStep[1], perStep[2]});
    return scene.measured > 0 && !ChooseGrid::isTooCoarse(scene, kSteps * longest);
  }

 private:
  static constexpr float kShortest = 1e-20f;
};

/// The steps of the minima, and the negated steps of the maxima. A lane without a box has kMax in
/// all six arrays.
struct alignas(64) ShortBlock {
  std::int16_t corners[6][kLanes];
};

struct ShortBlocks {
  ShortGrid grid;
  ShortBlock* blocks;  ///< one for each leaf block
};

/// Which of sixteen boxes may overlap a box, and whether all of these bits are certain.
struct ShortHits {
  std::uint32_t bits;
  bool areSure;
};

}  // namespace lbvh
