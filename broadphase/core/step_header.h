// SPDX-License-Identifier: Zlib
// What the stages of one step count and choose, in one small struct in the space's memory. Stages
// read each other's results here, so that the host need not wait between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// What one pass over the boxes measures. Its sums are of integers, so their order does not matter.
struct SceneBounds {
  static constexpr float kFar = 3e38f;

  float lo[3] = {kFar, kFar, kFar};  ///< of the measured boxes' centres
  float hi[3] = {-kFar, -kFar, -kFar};
  std::int64_t exponents = 0;  ///< sum over measured boxes of the exponent of their longest side
  std::uint32_t measured = 0;  ///< ordinary boxes that are not inverted
  std::uint32_t ordinary = 0, oversized = 0, nan = 0;

  LBVH_HD SceneBounds& operator+=(const SceneBounds& other) {
    for (int axis = 0; axis < 3; ++axis) {
      lo[axis] = other.lo[axis] < lo[axis] ? other.lo[axis] : lo[axis];
      hi[axis] = other.hi[axis] > hi[axis] ? other.hi[axis] : hi[axis];
    }
    exponents += other.exponents;
    measured += other.measured;
    ordinary += other.ordinary;
    oversized += other.oversized;
    nan += other.nan;
    return *this;
  }
};

/// The grid by whose cells boxes are sorted: 2^bits of them on the longest axis.
struct Grid {
  float lo[3] = {0, 0, 0};
  float perLength = 0;  ///< 1 / the longest axis; 0 without extent
  int bits = 10;        ///< 10, 14 or 21: what the rule of grid.h says

  /// The cell of a centre on an axis of 2^cellBits cells. What lies outside belongs to the first or
  /// last cell.
  LBVH_HD std::uint32_t cell(float x, int axis, int cellBits) const {
    const auto cells = static_cast<float>(1 << cellBits);
    const float t = (x - lo[axis]) * perLength * cells;
    return static_cast<std::uint32_t>(t > 0 ? (t < cells - 1 ? t : cells - 1) : 0);
  }
};

struct DeltaCount {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
};

/// What may change from step to step while the launches stay the same.
struct StepArguments {
  std::uint64_t boxes = 0;  ///< of the array that was handed in; what lies behind is padding
  std::uint64_t oldPairs = 0;
  std::uint64_t mostExtents = ~std::uint64_t{0};  ///< see StepHeader::extents
};

/// What a step reads, in the host's memory or in the space's.
struct StepInput {
  View<const Aabb> boxes;
  View<const Filter> filters;               ///< by box, or empty
  View<const std::uint8_t> removedObjects;  ///< by box, may be shorter: its old pairs do not count
  std::uint64_t maxPairs;
  View<const std::uint64_t> changed = {};  ///< as for PairFinder::update, or null
};

struct StepHeader {
  StepArguments arguments;
  SceneBounds scene;
  Grid grid;
  DeltaCount delta;

  // On a GPU (cuda/kernels/leaf_blocks.cuh, cuda/kernels/block_search.cuh, core/device_input.h):
  std::uint32_t errors = 0;   ///< DeviceError bits of the boxes; no stage of a step clears them
  std::uint64_t extents = 0;  ///< of all blocks; beyond arguments.mostExtents nothing is searched

  std::uint64_t pairs = 0;  ///< found; if they exceed the buffer, only the first were written
  std::uint64_t looks = 0;  ///< on a GPU: at blocks and boxes, by a sample of the blocks
};
static_assert(sizeof(void*) != 8 /* no GPU */ || offsetof(StepHeader, pairs) == 128,
              "a line of the cache for what many threads count in, another for what they read");

/// One element: a copy where the host reads it.
struct Report {
  const StepHeader* header;
  StepHeader* report;
  LBVH_HD void operator()(std::uint32_t) const { *report = *header; }
};

}  // namespace lbvh
