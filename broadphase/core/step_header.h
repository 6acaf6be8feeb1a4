// SPDX-License-Identifier: Zlib
// Holds the counts and choices of a step's stages, in one small struct in the space's memory.
// Stages read each other's results there, so that the host need not wait between two stages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// The measurements of a pass over the boxes. Only integers are added, so the sums do not depend on
/// the order of the additions.
struct SceneBounds {
  static constexpr float kFar = 3e38f;

  float lo[3] = {kFar, kFar, kFar};     ///< minimum of the centres of the measured boxes
  float hi[3] = {-kFar, -kFar, -kFar};  ///< maximum of these centres
  std::int64_t exponents = 0;  ///< sum of the exponents of the measured boxes' longest sides
  std::uint32_t measured = 0;  ///< number of measured boxes: ordinary and not inverted
  std::uint32_t ordinary = 0, oversized = 0, nan = 0;

  GPULBVH_HD SceneBounds& operator+=(const SceneBounds& other) {
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

/// The grid whose cells determine the sort keys. It has 2^bits cells on the longest axis.
struct Grid {
  float lo[3] = {0, 0, 0};
  float perLength = 0;  ///< 1 / length of the longest axis; 0 if that length is 0
  int bits = 10;        ///< 10, 14 or 21 (see grid.h); on the host also 0: boxes are not sorted
  /// Boxes with a side of at least this length are large. They are sorted after the others.
  float largeFrom = SceneBounds::kFar;

  /// The cell of a coordinate on an axis of 2^cellBits cells. Coordinates outside of the grid
  /// belong to its first or last cell.
  GPULBVH_HD std::uint32_t cell(float x, int axis, int cellBits) const {
    const auto cells = static_cast<float>(1 << cellBits);
    const float t = (x - lo[axis]) * perLength * cells;
    return static_cast<std::uint32_t>(t > 0 ? (t < cells - 1 ? t : cells - 1) : 0);
  }
};

struct DeltaCount {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
};

/// The values that may change from step to step while the kernel launches stay the same.
struct StepArguments {
  std::uint64_t boxes = 0;  ///< number of boxes of the input, without padding
  std::uint64_t oldPairs = 0;
  std::uint64_t mostExtents = ~std::uint64_t{0};  ///< see StepHeader::extents
};

class SharedWork;

/// The input of a step, in the host's memory or in the space's memory.
struct StepInput {
  View<const Aabb> boxes;
  View<const Filter> filters;  ///< by box, or empty
  /// By box: not 0 if its old pairs are ignored. May be shorter than `boxes`.
  View<const std::uint8_t> removedObjects;
  std::uint64_t maxPairs;
  View<const std::uint64_t> changed = {};  ///< as for PairFinder::update, or null
  /// A bit for each word of `changed`. If a bit is 0, its word is 0, and none of the word's boxes
  /// is new or belongs to a removed object. Null: all bits count as set.
  View<const std::uint64_t> changedWords = {};
  /// Work of the caller. A pipeline whose threads wait for a device may help with it. May be null.
  SharedWork* beside = nullptr;
};

struct StepHeader {
  /// Sets the arguments of a step, and clears its counters. The counts of boxes in `scene` stay.
  GPULBVH_HD void begin(const StepArguments& ofStep) {
    arguments = ofStep;
    pairs = 0;
    delta = DeltaCount{};
    extents = tests = 0;
  }

  StepArguments arguments;
  SceneBounds scene;
  Grid grid;
  DeltaCount delta;

  // On a GPU (cuda/kernels/leaf_blocks.cuh, cuda/kernels/block_search.cuh, core/device_input.h):
  std::uint32_t errors = 0;    ///< DeviceError bits of the boxes; no stage of a step clears them
  std::uint32_t overfull = 0;  ///< 1: a search for the pairs of few boxes found too many to store
  /// Sum of the extents of all blocks. If it exceeds arguments.mostExtents, nothing is searched.
  std::uint64_t extents = 0;

  /// Number of pairs found. Those beyond the buffer's capacity were not written.
  std::uint64_t pairs = 0;
  std::uint64_t tests = 0;  ///< on a GPU: tests of blocks and boxes, in a sample of the blocks
};
static_assert(sizeof(void*) != 8 /* no GPU */ || offsetof(StepHeader, pairs) == 128,
              "counters that many threads change need another cache line than what they read");

/// Copies the header to where the host reads it. Thread i copies word i, because one thread would
/// be slow.
struct Report {
  const StepHeader* header;
  StepHeader* report;

  static constexpr std::size_t kWords = sizeof(StepHeader) / sizeof(std::uint32_t);
  GPULBVH_HD void operator()(std::uint32_t i) const {
    reinterpret_cast<std::uint32_t*>(report)[i] = reinterpret_cast<const std::uint32_t*>(header)[i];
  }
};

}  // namespace lbvh
