// SPDX-License-Identifier: Zlib
// Puts the boxes of one world in the order in which they are packed: along a Hilbert curve over
// that world alone.
#pragma once

#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/host/order.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

class WorldOrder {
 public:
  WorldOrder(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), order_(tasks, kernels) {}

  /// So few boxes are searched sooner than they are ordered: they stay in the order of indices.
  static constexpr std::size_t kFew = 256;

  /// Sorts a world's ids, which ascend: the ordinary boxes, then the oversized ones, then those
  /// with a NaN.
  /// @return how many there are of each
  SceneBounds sort(View<const Aabb> boxes, View<std::uint32_t> ids);

 private:
  View<const Aabb> inOnePiece(View<const Aabb> boxes, View<const std::uint32_t> ids);
  static SceneBounds sortByClass(View<const Aabb> boxes, View<std::uint32_t> ids);
  void sortByShortKeys(View<const Aabb> boxes, const StepHeader& header, View<std::uint32_t> ids);
  void sortByLongKeys(View<const Aabb> boxes, const Grid& grid, View<std::uint32_t> ids);

  static constexpr std::size_t kGrain = 4096;

  HostTasks& tasks_;
  CurveOrder order_;
  HostRadixSort sort_;
  HostBuffer<Aabb> copies_;
  HostBuffer<std::uint32_t> shortKeys_, places_;
  HostBuffer<std::uint64_t> words_, spare_;
};

}  // namespace lbvh
