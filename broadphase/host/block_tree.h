// SPDX-License-Identifier: Zlib
// The host's own hierarchy. A block holds sixteen boxes, each coordinate in an array of its own, so
// that one box is tested against a block in a few instructions. Leaf blocks hold boxes that follow
// each other along a curve; blocks above them hold the bounds of sixteen blocks each, up to one
// root. Holds no memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::uint32_t kLanes = 16;

/// Six arrays of coordinates (three minima, three maxima), and what they bound: boxes in a leaf
/// block, blocks in the others. A lane without a box overlaps nothing; its child is kNullIndex.
struct alignas(64) BoxBlock {
  float corners[6][kLanes];
  std::uint32_t child[kLanes];

  Aabb box(std::uint32_t lane) const {
    return {{corners[0][lane], corners[1][lane], corners[2][lane]},
            {corners[3][lane], corners[4][lane], corners[5][lane]}};
  }

  void set(std::uint32_t lane, const Aabb& box, std::uint32_t id) {
    for (int axis = 0; axis < 3; ++axis) {
      corners[axis][lane] = box.min[axis];
      // -0 becomes +0: else the difference to 0 would have a sign.
      corners[3 + axis][lane] = box.max[axis] + 0.0f;
    }
    child[lane] = id;
  }

  /// No box in this lane.
  void clear(std::uint32_t lane) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int k = 0; k < 6; ++k) corners[k][lane] = k < 3 ? kInfinity : -kInfinity;
    child[lane] = kNullIndex;
  }
};

/// The filters of a leaf block's boxes.
struct alignas(64) FilterBlock {
  std::int32_t group[kLanes];
  std::int32_t mask[kLanes];
};

/// Leaf blocks come first, then each level above them; the root is the last block.
struct BlockTree {
  BoxBlock* blocks = nullptr;
  FilterBlock* filters = nullptr;  ///< of the leaf blocks, or null: all pairs should collide
  std::uint32_t boxes = 0;
  std::uint32_t leafBlocks = 0;
  std::uint32_t root = 0;
  bool isInIndexOrder = false;  ///< boxes lie in the order of their indices

  static constexpr std::uint32_t blocksOver(std::uint32_t children) {
    return (children + kLanes - 1) / kLanes;
  }

  /// Calls level(first child, children, first parent) from the leaf blocks' parents to the root. A
  /// single leaf block has a parent, too.
  /// @return how many blocks there are
  template <class Level>
  static std::uint32_t forLevels(std::uint32_t leafBlocks, const Level& level) {
    std::uint32_t first = 0, children = leafBlocks;
    do {
      level(first, children, first + children);
      first += children;
      children = blocksOver(children);
    } while (children > 1);
    return first + 1;
  }
};

/// Boxes packed into blocks, by their indices in the arrays that they come from.
struct PackedBoxes {
  BlockTree tree;
  View<const Aabb> boxes;
  View<const Filter> filters;           ///< by box, or empty
  View<const std::uint32_t> oversized;  ///< not in the tree
  View<const std::uint32_t> nan;        ///< likewise; they overlap nothing
};

/// Calls visit(index, box) for all that may overlap something.
template <class Visit>
void forBoxes(const PackedBoxes& packed, const Visit& visit) {
  for (std::uint32_t k = 0; k < packed.tree.leafBlocks; ++k) {
    const BoxBlock& block = packed.tree.blocks[k];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (block.child[lane] == kNullIndex) continue;
      visit(block.child[lane], block.box(lane));
    }
  }
  for (const std::uint32_t id : packed.oversized) visit(id, packed.boxes[id]);
}

}  // namespace lbvh
