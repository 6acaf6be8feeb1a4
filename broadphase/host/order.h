// SPDX-License-Identifier: Zlib
// Stages 1 and 2 of a step on the host, over its threads: the bounds of the scene, and each box's
// key along a Hilbert curve. The inner loops are in simd/codes.inl.
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

  SceneBounds measure(View<const Aabb> boxes);

  /// Writes the key by which each box is to be sorted, and the box's own index.
  template <class Key>
  void assignKeys(View<const Aabb> boxes, const Grid& grid, Key* keys, std::uint32_t* ids) {
    tasks_.forRanges(boxes.size, kGrain, [&](std::size_t begin, std::size_t end) {
      if constexpr (sizeof(Key) == 4)
        kernels_.assignShortKeys(boxes, grid, keys, ids, begin, end);
      else
        kernels_.assignLongKeys(boxes, grid, keys, ids, begin, end);
    });
  }

  /// The lowest bit of a short key that a sort needs. Seven bits an axis take two passes instead
  /// of three. They do where few boxes share one of their cells, because it is no longer than a
  /// box.
  static int lowestBit(const StepHeader& step) {
    constexpr int kFewBits = 7;
    const float cell = 1 / (step.grid.perLength * (1 << kFewBits));
    if (step.arguments.boxes > kFewBoxes || ChooseGrid::isTooCoarse(step.scene, cell)) return 0;
    return AssignCodes<std::uint32_t>::lowestBit(kFewBits);
  }

  std::size_t memoryBytes() const { return partial_.bytes(); }

 private:
  static constexpr std::size_t kGrain = 4096;  // boxes
  static constexpr std::size_t kFewBoxes = 65536;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<SceneBounds> partial_;  ///< a thread each
};

}  // namespace lbvh
