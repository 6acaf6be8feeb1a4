// SPDX-License-Identifier: Zlib
// The tree for queries, from boxes on. Base of the host's pipeline, which also
// sorts with it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/scratch.h"
#include "broadphase/core/step_header.h"
#include "broadphase/lbvh/hierarchy.h"

namespace lbvh {

template <class Space>
class TreeStages {
 protected:
  template <class... Args>
  explicit TreeStages(Args... args) : space_(args...) {}
  ~TreeStages() = default;

  template <class T>
  using Buffer = typename Space::template Buffer<T>;
  using Scratch = lbvh::Scratch<typename Space::Memory>;

  /// Stage 1: writes the header, without pairs.
  void measure(View<const Aabb> boxes) {
    StepHeader* header = header_.ensure(1).data;
    space_.reduce(boxes.size, MeasureScene{boxes}, &header->scene);
    space_.forEach(1, ChooseGrid{boxes, nullptr, header});
  }

  /// Stages 2 to 4, in fresh scratch memory: the tree is there until the next reset(). `Key`
  /// decides about 30 or 63 bits. The header's grid may say otherwise, which costs only time.
  /// @param leaves at least as many as there are
  template <class Key>
  void buildNodes(View<const Aabb> boxes, std::size_t leaves) {
    scratch_.reset(bytesForTree<Key>(boxes.size, leaves));
    const View<std::uint32_t> arrivals =
        scratch_.template lend<std::uint32_t>("arrivals", boxes.size);
    const View<Key> codes = assignCodes<Key>(boxes, arrivals);
    sort(codes, 0);
    nodes_ = buildHierarchy(boxes, leaves, codes, arrivals);
  }

  Tree treeOver(const SceneBounds& scene) const {
    const std::size_t leaves = scene.ordinary;
    return {{nodes_.data, leaves == 0 ? 0 : 2 * leaves - 1},
            {ids_.data() + leaves, scene.oversized}};
  }

  /// Stage 3: the sort by `keys`, from bit `shift` on, of the boxes in ids_, with spare
  /// memory of its own.
  template <class Key>
  void sort(View<Key> keys, int shift) {
    const typename Scratch::Frame frame(scratch_);
    const View<Key> spareKeys = scratch_.template lend<Key>("spare keys", keys.size);
    const View<std::uint32_t> spareIds =
        scratch_.template lend<std::uint32_t>("spare ids", keys.size);
    space_.sortByKey(keys, {ids_.data(), keys.size}, spareKeys, spareIds, shift,
                     AssignCodes<Key>::kKeyBits - shift);
  }
  template <class Key>
  static std::size_t bytesForSort(std::size_t n) {
    return scratchBytes<Key>(n) + scratchBytes<std::uint32_t>(n);
  }

  std::size_t treeBytes() const { return header_.bytes() + ids_.bytes() + scratch_.bytes(); }

  StepHeader* header() const { return header_.data(); }

  Space space_;
  Buffer<StepHeader> header_{space_.memory()};
  /// Sorted: the leaves' boxes, then oversized boxes, then NaN boxes.
  Buffer<std::uint32_t> ids_{space_.memory()};
  Scratch scratch_{space_.memory()};  ///< of a step, or of a tree
  View<Node> nodes_;                  ///< of the tree

 private:
  template <class Key>
  static std::size_t bytesForTree(std::size_t boxes, std::size_t leaves) {
    return scratchBytes<std::uint32_t>(boxes) + scratchBytes<Key>(boxes) +
           std::max(bytesForSort<Key>(boxes), scratchBytes<Node>(2 * leaves));
  }

  /// Stage 2.
  template <class Key>
  View<Key> assignCodes(View<const Aabb> boxes, View<std::uint32_t> arrivals) {
    const View<Key> codes = scratch_.template lend<Key>("codes", boxes.size);
    space_.forEach(boxes.size, AssignCodes<Key>{boxes, &header()->grid, codes.data,
                                                ids_.ensure(boxes.size).data, arrivals.data});
    return codes;
  }

  /// Stage 4.
  template <class Key>
  View<Node> buildHierarchy(View<const Aabb> boxes, std::size_t leaves, View<Key> codes,
                            View<std::uint32_t> arrivals) {
    const View<Node> nodes = scratch_.template lend<Node>("nodes", 2 * leaves);
    space_.forEach(leaves, BuildHierarchy<Key>{boxes, ids_.data(), codes.data, &header()->scene,
                                               arrivals.data, nodes.data});
    return nodes;
  }
};

}  // namespace lbvh
