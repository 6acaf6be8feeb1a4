// SPDX-License-Identifier: Zlib
// Stages 1 to 4 on an NVIDIA GPU: from boxes to blocks of them, in the order of a Hilbert curve.
// Base of cuda_stages.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/cuda/leaf_blocks.cuh"
#include "broadphase/cuda/measure.cuh"
#include "broadphase/exec/cuda/space.cuh"
#include "broadphase/exec/scratch.h"
#include "broadphase/options.h"
#include "broadphase/stages/hilbert.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class CudaBlocks {
 protected:
  explicit CudaBlocks(const CudaSpaceOptions& options) : space_(options) {
    space_.fill(ended_.ensure(1), 0);
    space_.fill(header_.ensure(1), 0);  // its padding is copied with it
    space_.wait();                      // before another stream may be used
  }
  ~CudaBlocks() = default;

  template <class T>
  using Buffer = DeviceBuffer<T>;

  /// Stage 1: writes the header, without pairs, and clears what later stages count in.
  /// @param arguments null: all boxes count
  void measure(View<const Aabb> boxes, const StepArguments* arguments, View<std::uint32_t> counts,
               View<unsigned long long> words, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    MeasureStep step{{boxes}, {boxes, arguments, header()}};
    step.ended = ended_.data();
    step.counts = counts;
    step.words = words;
    const std::size_t blocks = MeasureStep::blocks(step.elements());
    step.partial = partial_.ensure(blocks).data;
    space_.launch(blocks, kThreads, measureKernel, step);
  }

  /// A radix sort takes one kernel for so few keys that one block sorts them. For more it takes 12
  /// launches, of which one has as many blocks as the device holds, however few the keys. A merge
  /// sort then takes 1 to 11 launches, and fewer instructions.
  static constexpr std::size_t kLeastMerged = 2305, kMostMerged = 1 << 17;
  static bool merges(std::size_t boxes) { return boxes >= kLeastMerged && boxes <= kMostMerged; }

  /// Stages 2 and 3: the boxes in the order of their codes. `Key` decides about 30 or 63 bits. The
  /// header's grid may have other bits, which costs only time.
  template <class Key>
  void order(View<const Aabb> boxes, int gridBits, StepStats& stats) {
    const std::size_t n = boxes.size;
    scratch_.reset(2 * scratchBytes<Key>(n) + scratchBytes<std::uint32_t>(n));
    const View<Key> codes = scratch_.lend<Key>("codes", n);
    const View<std::uint32_t> sorted = ids_.ensure(n);
    const View<std::uint32_t> ids = merges(n) ? sorted : scratch_.lend<std::uint32_t>("ids", n);
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      space_.forEach(n, AssignHilbertCodes<Key>{boxes, &header()->grid, codes.data, ids.data});
    }
    const auto timer = space_.timed("sort", stats.sortMs);
    if (merges(n))
      space_.mergeSort(codes, ids);
    else
      space_.sortInto(codes, ids, scratch_.lend<Key>("sorted codes", n), sorted,
                      AssignCodes<Key>::lowestBit(gridBits), 3 * gridBits + 1);
  }

  /// Stage 4.
  LeafBlocks pack(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const LeafBlocks leaves = leaves_.ensure(boxes.size);
    space_.launch(leaves.groupCount, PackBlocks::kGroup, packBlocksKernel,
                  PackBlocks{boxes, ids_.data(), leaves, header()});
    return leaves;
  }

  StepHeader* header() const { return header_.data(); }

  CudaSpace space_;
  Buffer<StepHeader> header_{space_.memory()};
  Buffer<std::uint32_t> ids_{space_.memory()};      ///< of the boxes, in the order of the curve
  Scratch<DeviceMemory> scratch_{space_.memory()};  ///< of the sort
  LeafBlockBuffers leaves_{space_.memory()};
  Buffer<SceneBounds> partial_{space_.memory()};  ///< by block

 private:
  Buffer<std::uint32_t> ended_{space_.memory()};
};

}  // namespace lbvh
