// SPDX-License-Identifier: Zlib
// Builds the binary tree of version 0.2, for PairFinder::buildTree(). This file and that function
// will be removed in 0.4.
#pragma once

#include "broadphase/core/limits.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/lbvh/tree_stages.h"

namespace lbvh {

class OldTree : TreeStages<HostSpace> {
 public:
  /// @param threads at least 1
  explicit OldTree(int threads) : TreeStages(threads) {}

  /// @throws std::length_error, std::bad_alloc; then there is no tree
  void build(View<const Aabb> boxes) {
    tree_ = {};
    requireFitting(boxes, {});
    StepStats times;  // not reported
    measure(boxes, times);
    buildNodes(boxes, header()->scene.ordinary, times);
    tree_ = treeOver(header()->scene);
  }

  Tree nodes() const { return tree_; }

 private:
  Tree tree_;
};

}  // namespace lbvh
