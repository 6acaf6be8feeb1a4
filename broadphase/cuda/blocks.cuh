// SPDX-License-Identifier: Zlib
// Stages 1 to 4 on an NVIDIA GPU: from boxes to blocks of them, in the order of a Hilbert curve.
// Base of stages.cuh.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "broadphase/core/hilbert.h"
#include "broadphase/core/scratch.h"
#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/measure.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/options.h"

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
               View<unsigned long long> words) {
    const auto timer = timed("bounds", &StepStats::boundsMs);
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
  static bool merges(std::size_t boxes) {
    return kCubMerges && boxes >= kLeastMerged && boxes <= kMostMerged;
  }

  /// Stages 2 and 3: the boxes in the order of their codes. `Key` decides about 30 or 63 bits. The
  /// header's grid may have other bits, which costs only time.
  template <class Key>
  void order(View<const Aabb> boxes, int gridBits) {
    const SortBits bits{AssignCodes<Key>::lowestBit(gridBits), 3 * gridBits + 1};
    orderBy<Key>(boxes.size, bits, [&](Key* codes, std::uint32_t* ids) {
      return AssignHilbertCodes<Key>{boxes, &header()->grid, codes, ids};
    });
  }

  /// The same world by world.
  /// @param ranks by box, at most worlds + 1
  void orderByWorld(View<const Aabb> boxes, const std::uint32_t* ranks, std::uint32_t worlds,
                    int gridBits) {
    const int rankBits = static_cast<int>(std::bit_width(worlds + 1));
    const int codeBits = AssignWorldKeys::codeBitsFor(gridBits, rankBits);
    const SortBits bits{0, codeBits + rankBits};
    orderBy<std::uint64_t>(boxes.size, bits, [&](std::uint64_t* keys, std::uint32_t* ids) {
      return AssignWorldKeys{boxes, ranks, &header()->grid, codeBits, keys, ids};
    });
  }

  /// Stage 4.
  /// @param ranks by box, or null: there are no worlds
  LeafBlocks pack(View<const Aabb> boxes, const std::uint32_t* ranks) {
    const auto timer = timed("hierarchy", &StepStats::hierarchyMs);
    const LeafBlocks leaves = leaves_.ensure(boxes.size);
    space_.launch(leaves.groupCount, PackBlocks::kGroup, packBlocksKernel,
                  PackBlocks{boxes, ids_.data(), leaves, header(), ranks});
    return leaves;
  }

  StepHeader* header() const { return header_.data(); }

  CudaSpace::Range timed(const char* name, double StepStats::*ms) {
    return space_.timed(name, stats_ != nullptr ? &(stats_->*ms) : nullptr);
  }

  StepStats* stats_ = nullptr;  ///< where the stages' times go; null: nobody asks

  CudaSpace space_;
  Buffer<StepHeader> header_{space_.memory()};
  Buffer<std::uint32_t> ids_{space_.memory()};      ///< of the boxes, in the order of the curve
  Scratch<DeviceMemory> scratch_{space_.memory()};  ///< of the sort
  LeafBlockBuffers leaves_{space_.memory()};
  Buffer<SceneBounds> partial_{space_.memory()};  ///< by block

 private:
  struct SortBits {
    int lowest, count;
  };

  /// @param assign given where keys and ids go, the element function that writes them
  template <class Key, class Assign>
  void orderBy(std::size_t n, SortBits bits, const Assign& assign) {
    scratch_.reset(2 * scratchBytes<Key>(n) + scratchBytes<std::uint32_t>(n));
    const View<Key> keys = scratch_.lend<Key>("codes", n);
    const View<std::uint32_t> sorted = ids_.ensure(n);
    const View<std::uint32_t> ids = merges(n) ? sorted : scratch_.lend<std::uint32_t>("ids", n);
    {
      const auto timer = timed("codes", &StepStats::codesMs);
      space_.forEach(n, assign(keys.data, ids.data));
    }
    const auto timer = timed("sort", &StepStats::sortMs);
    if constexpr (kCubMerges) {
      if (merges(n)) return space_.mergeSort(keys, ids);
    }
    space_.sortInto(keys, ids, scratch_.lend<Key>("sorted codes", n), sorted, bits.lowest,
                    bits.count);
  }

  Buffer<std::uint32_t> ended_{space_.memory()};
};

}  // namespace lbvh
