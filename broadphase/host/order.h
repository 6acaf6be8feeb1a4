// SPDX-License-Identifier: Zlib
// Runs stages 1 and 2 of a step on the host's threads: the bounds of the scene, and keys along a
// Hilbert curve. The inner loops are in simd/codes.inl.
#pragma once

#include <cstdint>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/step_header.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

class CurveOrder {
 public:
  CurveOrder(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  SceneBounds measure(View<const Aabb> boxes) {
    const std::size_t parts = tasks_.parts(boxes.size(), kGrain);
    const View<SceneBounds> partial = partial_.ensure(parts);
    tasks_.forParts(boxes.size(), parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      partial[part] = kernels_.measure(boxes, begin, end);
    });
    SceneBounds sum;
    for (const SceneBounds& one : partial) sum += one;
    return sum;
  }

  /// Writes the sort key and the index of each box.
  template <class Key>
  void assignKeys(View<const Aabb> boxes, const Grid& grid, Key* keys, std::uint32_t* ids) {
    tasks_.forRanges(boxes.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      if constexpr (sizeof(Key) == 4)
        kernels_.assignShortKeys(boxes, grid, keys, ids, begin, end);
      else
        kernels_.assignLongKeys(boxes, grid, keys, ids, begin, end);
    });
  }

  /// The lowest bit of a short key that the sort needs. With seven bits per axis the sort takes two
  /// passes instead of three. Seven bits are enough if a cell is then at most about as long as a
  /// box, because few boxes share such a cell.
  static int lowestBit(const StepHeader& step) {
    constexpr int kShortBits = 7;
    const float cell = 1 / (step.grid.perLength * (1 << kShortBits));
    if (step.arguments.boxes > kMaxForShortKeys || ChooseGrid::isTooCoarse(step.scene, cell))
      return 0;
    return AssignCodes<std::uint32_t>::lowestBit(kShortBits);
  }

  std::size_t memoryBytes() const { return partial_.bytes(); }

 private:
  static constexpr std::size_t kGrain = 4096;  // boxes
  static constexpr std::size_t kMaxForShortKeys = 65536;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<SceneBounds> partial_;  ///< one for each part
};

}  // namespace lbvh
