// Stages 1 to 4 on any space: from boxes to the tree, each stage timed. Base of the pipelines,
// which own what comes after.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/exec/space.h"
#include "broadphase/pipelines/pipeline.h"
#include "broadphase/stages/grid.h"
#include "broadphase/stages/hierarchy.h"
#include "broadphase/stages/morton.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

template <class Space>
class TreeStages {
 protected:
  template <class... Args>
  explicit TreeStages(Args... args) : space_(args...) {}
  ~TreeStages() = default;

  template <class T>
  using Buffer = typename Space::template Buffer<T>;

  /// Stage 1: writes the header, without pairs.
  /// @param arguments null: all boxes count
  void measure(View<const Aabb> boxes, const StepArguments* arguments, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    StepHeader* header = header_.ensure(1).data;
    space_.reduce(boxes.size, MeasureScene{boxes}, &header->scene);
    space_.forEach(1, ChooseGrid{boxes, arguments, header});
  }

  /// Stages 2 and 3. `Key` decides about 30 or 63 bits; the header's grid may say otherwise, which
  /// costs only time.
  template <class Key>
  void sortByCode(View<const Aabb> boxes, StepStats& stats) {
    const std::size_t n = boxes.size;
    const SortMemory<Key> memory = sortMemory<Key>(n, 2 * n);
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      space_.forEach(n, AssignCodes<Key>{boxes, &header()->grid, memory.keys.data, memory.ids.data,
                                         arrivals_.ensure(n).data});
    }
    const auto timer = space_.timed("sort", stats.sortMs);
    sort(memory);
  }

  /// Nodes that make two words for each of n boxes.
  static std::size_t spareNodes(std::size_t n) { return n / 2 + 1; }

  template <class Key>
  struct SortMemory {
    View<Key> keys, spareKeys;
    View<std::uint32_t> ids, spareIds;
    std::uint64_t* spare;  ///< two words a box, of which the spare arrays are parts
  };

  /// The nodes are not written before the sort is done, so they lend it its spare memory.
  /// @param nodes for how many there must be room: at least spareNodes(n)
  template <class Key>
  SortMemory<Key> sortMemory(std::size_t n, std::size_t nodes) {
    auto* spare = reinterpret_cast<std::uint64_t*>(nodes_.ensure(nodes).data);
    return {{reinterpret_cast<Key*>(keys_.ensure(n * sizeof(Key) / 4).data), n},
            {reinterpret_cast<Key*>(spare), n},
            ids_.ensure(n),
            {reinterpret_cast<std::uint32_t*>(spare + n), n},
            spare};
  }

  template <class Key>
  void sort(const SortMemory<Key>& memory) {
    space_.sortByKey(memory.keys, memory.ids, memory.spareKeys, memory.spareIds,
                     AssignCodes<Key>::kKeyBits);
  }

  /// Stage 4. @param leaves at least as many as there are
  template <class Key>
  void link(View<const Aabb> boxes, std::size_t leaves, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const auto* codes = reinterpret_cast<const Key*>(keys_.data());
    space_.forEach(leaves, BuildHierarchy<Key>{boxes, ids_.data(), codes, &header()->scene,
                                               arrivals_.data(), nodes_.data()});
  }

  Tree treeOver(const SceneBounds& scene) const {
    const std::size_t leaves = scene.ordinary;
    return {{nodes_.data(), leaves == 0 ? 0 : 2 * leaves - 1},
            {ids_.data() + leaves, scene.oversized}};
  }

  static void describe(const StepHeader& header, StepStats& stats) {
    stats.oversizedBoxes = header.scene.oversized;
    stats.nanBoxes = header.scene.nan;
    stats.mortonBits = 3 * header.grid.bits;
  }

  std::size_t treeBytes() const {
    return header_.bytes() + keys_.bytes() + ids_.bytes() + nodes_.bytes() + arrivals_.bytes();
  }

  StepHeader* header() const { return header_.data(); }

  Space space_;
  Buffer<StepHeader> header_;
  Buffer<std::uint32_t> keys_;
  Buffer<std::uint32_t>
      ids_;  ///< sorted: the leaves' boxes, then the oversized boxes, then NaN boxes
  Buffer<Node> nodes_;
  Buffer<std::uint32_t> arrivals_;
};

}  // namespace lbvh
