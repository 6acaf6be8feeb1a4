// SPDX-License-Identifier: Zlib
// Runs stages 1 to 4 for a binary tree: from boxes to nodes. This is the base class of the host's
// pipeline with a binary tree, and of the trees of version 0.2.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/scratch.h"
#include "broadphase/core/step_header.h"
#include "broadphase/lbvh/hierarchy.h"
#include "broadphase/options.h"

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

  /// Runs stage 1: writes the scene and the grid to the header, and clears its counters.
  void measure(View<const Aabb> boxes, StepStats& stats) {
    const auto timer = space_.timed("bounds", stats.boundsMs);
    StepHeader* header = header_.ensure(1).data();
    space_.reduce(boxes.size(), MeasureScene{boxes}, &header->scene);
    space_.forEach(1, ChooseGrid{boxes, nullptr, header});
  }

  /// Runs stages 2 to 4, after measure(). Resets the scratch memory. The tree is valid until the
  /// scratch memory is reset again. The length of the codes depends on the grid.
  /// @param leaves number of sorted boxes that become leaves. Ordinary boxes are sorted first, NaN
  ///   boxes last
  void buildNodes(View<const Aabb> boxes, std::size_t leaves, StepStats& stats) {
    if (header()->grid.bits == 10)
      buildNodesBy<std::uint32_t>(boxes, leaves, stats);
    else
      buildNodesBy<std::uint64_t>(boxes, leaves, stats);
  }

  Tree treeOver(const SceneBounds& scene) const {
    const std::size_t leaves = scene.ordinary;
    return {{nodes_.data(), leaves == 0 ? 0 : 2 * leaves - 1},
            {ids_.data() + leaves, scene.oversized}};
  }

  /// Stage 3: sorts the boxes in ids_ by `keys`, from bit `shift` on. Allocates spare memory from
  /// scratch_.
  template <class Key>
  void sort(View<Key> keys, int shift) {
    const typename Scratch::Frame frame(scratch_);
    const View<Key> spareKeys = scratch_.template lend<Key>("spare keys", keys.size());
    const View<std::uint32_t> spareIds =
        scratch_.template lend<std::uint32_t>("spare ids", keys.size());
    space_.sortByKey(keys, {ids_.data(), keys.size()}, spareKeys, spareIds, shift,
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
  /// Indices of the boxes in sorted order: boxes of the leaves, then oversized, then NaN boxes.
  Buffer<std::uint32_t> ids_{space_.memory()};
  Scratch scratch_{space_.memory()};  ///< memory of a step, or of the construction of a tree
  View<Node> nodes_;                  ///< the tree's nodes

 private:
  template <class Key>
  void buildNodesBy(View<const Aabb> boxes, std::size_t leaves, StepStats& stats) {
    scratch_.reset(bytesForTree<Key>(boxes.size(), leaves));
    const View<std::uint32_t> arrivals =
        scratch_.template lend<std::uint32_t>("arrivals", boxes.size());
    const View<Key> codes = assignCodes<Key>(boxes, arrivals, stats);
    {
      const auto timer = space_.timed("sort", stats.sortMs);
      sort(codes, AssignCodes<Key>::lowestBit(header()->grid.bits));
    }
    nodes_ = buildHierarchy(boxes, leaves, codes, arrivals, stats);
  }

  template <class Key>
  static std::size_t bytesForTree(std::size_t boxes, std::size_t leaves) {
    return scratchBytes<std::uint32_t>(boxes) + scratchBytes<Key>(boxes) +
           std::max(bytesForSort<Key>(boxes), scratchBytes<Node>(2 * leaves));
  }

  /// Runs stage 2.
  template <class Key>
  View<Key> assignCodes(View<const Aabb> boxes, View<std::uint32_t> arrivals, StepStats& stats) {
    const auto timer = space_.timed("codes", stats.codesMs);
    const View<Key> codes = scratch_.template lend<Key>("codes", boxes.size());
    const Grid& grid = header()->grid;
    space_.forEach(boxes.size(),
                   AssignCodes<Key>{boxes, &grid, codes.data(), ids_.ensure(boxes.size()).data(),
                                    arrivals.data(), grid.bits});
    return codes;
  }

  /// Runs stage 4.
  template <class Key>
  View<Node> buildHierarchy(View<const Aabb> boxes, std::size_t leaves, View<Key> codes,
                            View<std::uint32_t> arrivals, StepStats& stats) {
    const auto timer = space_.timed("hierarchy", stats.hierarchyMs);
    const View<Node> nodes = scratch_.template lend<Node>("nodes", 2 * leaves);
    const auto n = static_cast<std::uint32_t>(leaves);
    space_.forEach(leaves, BuildHierarchy<Key>{boxes, ids_.data(), codes.data(), n, arrivals.data(),
                                               nodes.data()});
    return nodes;
  }
};

}  // namespace lbvh
