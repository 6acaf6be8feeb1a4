// SPDX-License-Identifier: Zlib
#include "broadphase/host/block_wear.h"

#include <algorithm>

namespace lbvh {
namespace {

/// Half of a box's surface area. It is 0 for the bounds of a block without boxes.
double surfaceOf(const Aabb& box) {
  double side[3];
  for (int axis = 0; axis < 3; ++axis)
    side[axis] = std::max(0.0, double{box.max[axis]} - double{box.min[axis]});
  return side[0] * side[1] + side[1] * side[2] + side[2] * side[0];
}

/// The bounds of a leaf block are in a lane of its parent. The parents are stored after the leaf
/// blocks.
Aabb boundsOf(const BlockTree& tree, std::uint32_t leafBlock) {
  return tree.blocks[tree.leafBlocks + leafBlock / kLanes].box(leafBlock % kLanes);
}

}  // namespace

void BlockWear::begin(const BlockTree& tree) {
  double sum = 0;
  for (std::uint32_t i = 0; i < tree.leafBlocks; ++i) sum += lbvh::surfaceOf(boundsOf(tree, i));
  unit_ = sum > 0 ? kUnits * tree.leafBlocks / sum : 0;
  packed_ = waste_ = 0;
  for (std::uint32_t i = 0; i < tree.leafBlocks; ++i) packed_ += surfaceOf(tree, i);
  surface_ = packed_;
}

std::uint64_t BlockWear::surfaceOf(const BlockTree& tree, std::uint32_t leafBlock) const {
  return static_cast<std::uint64_t>(
      std::min(unit_ * lbvh::surfaceOf(boundsOf(tree, leafBlock)), kMaxUnits));
}

void BlockWear::endStep() {
  const std::uint64_t surface = surface_;
  if (surface > packed_) waste_ += std::min(surface - packed_, packed_);
}

}  // namespace lbvh
