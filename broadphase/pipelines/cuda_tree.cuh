// Stages 1 to 4 on an NVIDIA GPU: from boxes to the tree. Base of cuda_stages.cuh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "broadphase/cuda/measure.cuh"
#include "broadphase/exec/cuda/space.cuh"
#include "broadphase/exec/scratch.h"
#include "broadphase/options.h"
#include "broadphase/stages/hierarchy.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class CudaTree {
 protected:
  explicit CudaTree(const CudaSpaceOptions& options) : space_(options) {
    space_.fill(ended_.ensure(1), 0);
    space_.wait();  // before another stream may be used
  }
  ~CudaTree() = default;

  template <class T>
  using Buffer = DeviceBuffer<T>;

  /// Stage 1: writes the header, without pairs, and clears what later stages count in.
  /// @param arguments null: all boxes count
  void measure(View<const Aabb> boxes, const StepArguments* arguments, View<std::uint32_t> counts,
               View<unsigned long long> words, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    MeasureStep step{{boxes}, {boxes, arguments, header_.ensure(1).data}};
    step.ended = ended_.data();
    step.arrivals = arrivals_.ensure(boxes.size);
    step.counts = counts;
    step.words = words;
    const std::size_t blocks = MeasureStep::blocks(step.elements());
    step.partial = partial_.ensure(blocks).data;
    space_.launch(blocks, measureKernel, step);
  }

  /// Stages 2 and 3: the boxes in the order of their codes. `Key` decides about 30 or 63 bits. The
  /// header's grid may say otherwise, which costs only time.
  template <class Key>
  void order(View<const Aabb> boxes, StepStats& stats) {
    const std::size_t n = boxes.size;
    scratch_.reset(
        std::max(scratchBytes<Key>(n) + scratchBytes<std::uint32_t>(n), scratchBytes<Node>(2 * n)));
    const Scratch<DeviceMemory>::Frame frame(scratch_);
    const View<Key> codes = scratch_.lend<Key>("codes", n);
    const View<std::uint32_t> ids = scratch_.lend<std::uint32_t>("ids", n);
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      space_.forEach(n, AssignCodes<Key>{boxes, &header()->grid, codes.data, ids.data, nullptr});
    }
    const auto timer = space_.timed("sort", stats.sortMs);
    space_.sortInto(codes, ids, View<Key>{codesOf<Key>(n), n}, ids_.ensure(n),
                    AssignCodes<Key>::kKeyBits);
  }

  /// Stage 4.
  template <class Key>
  void buildHierarchy(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const std::size_t n = boxes.size;
    nodes_ = scratch_.lend<Node>("nodes", 2 * n);
    space_.forEach(n, BuildHierarchy<Key>{boxes, ids_.data(), codesOf<Key>(n), &header()->scene,
                                          arrivals_.data(), nodes_.data});
  }

  Tree treeOver(const SceneBounds& scene) const {
    const std::size_t leaves = scene.ordinary;
    return {{nodes_.data, leaves == 0 ? 0 : 2 * leaves - 1},
            {ids_.data() + leaves, scene.oversized}};
  }

  static void describe(const StepHeader& header, StepStats& stats) {
    stats.oversizedBoxes = header.scene.oversized;
    stats.nanBoxes = header.scene.nan;
    stats.mortonBits = 3 * header.grid.bits;
  }

  StepHeader* header() const { return header_.data(); }

  CudaSpace space_;
  Buffer<StepHeader> header_{space_.memory()};
  /// Sorted: the leaves' boxes, then oversized boxes, then NaN boxes.
  Buffer<std::uint32_t> ids_{space_.memory()};
  Scratch<DeviceMemory> scratch_{space_.memory()};  ///< of a step, or of a tree
  View<Node> nodes_;                                ///< of the tree

 private:
  template <class Key>
  Key* codesOf(std::size_t n) {
    return reinterpret_cast<Key*>(codes_.ensure(n * sizeof(Key)).data);
  }

  Buffer<std::byte> codes_{space_.memory()};  ///< in the order of ids_
  Buffer<std::uint32_t> arrivals_{space_.memory()};
  Buffer<SceneBounds> partial_{space_.memory()};
  Buffer<std::uint32_t> ended_{space_.memory()};
};

}  // namespace lbvh
