// SPDX-License-Identifier: Zlib
// Defines the host's hierarchy. A block holds sixteen boxes, with each coordinate in a separate
// array, so that one box is tested against a block in a few instructions. Leaf blocks hold
// consecutive boxes along a curve. The blocks above hold the bounds of sixteen blocks each, up to
// one root. Owns no memory. Installed because block_query.h includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "../types.h"

namespace lbvh {

inline constexpr std::uint32_t kLanes = 16;

/// Sixteen lanes. Each has the corners of a box: three minima and three maxima. `child` is the
/// index of a box in a leaf block, and of a block in all other blocks. A lane without a box
/// overlaps nothing, and its child is kNullIndex.
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
      // Turns -0 into +0: tests use the sign of a difference, and -0 - 0 is -0.
      corners[3 + axis][lane] = box.max[axis] + 0.0f;
    }
    child[lane] = id;
  }

  void clear(std::uint32_t lane) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int k = 0; k < 6; ++k) corners[k][lane] = k < 3 ? kInfinity : -kInfinity;
    child[lane] = kNullIndex;
  }
};

/// The filters of a block's lanes. In a leaf block they are the filters of its boxes. In other
/// blocks, a lane has every group bit and every mask bit of the boxes below. So a search can skip
/// blocks whose filters cannot match. A lane without a box has group 0 and mask 0.
struct alignas(64) FilterBlock {
  std::int32_t group[kLanes];
  std::int32_t mask[kLanes];

  void set(std::uint32_t lane, Filter filter) {
    group[lane] = filter.group;
    mask[lane] = filter.mask;
  }
  void clear(std::uint32_t lane) { set(lane, {0, 0}); }
};

struct ShortBlocks;

/// Leaf blocks come first, then each level above them; the root is the last block.
struct BlockTree {
  BoxBlock* blocks = nullptr;
  FilterBlock* filters = nullptr;  ///< one for each block; null: all pairs should collide
  /// Null without filters. Used only in searches by rank. One element for each parent of leaf
  /// blocks. A lane has the group bits and mask bits that all boxes of a leaf block share. If the
  /// shared bits of two leaf blocks match, so do the filters of all their boxes.
  FilterBlock* common = nullptr;
  const ShortBlocks* shorts = nullptr;  ///< one for each leaf block, or null; for searches by rank
  std::uint32_t boxes = 0;              ///< number of lanes for boxes; some may be empty
  std::uint32_t leafBlocks = 0;
  std::uint32_t root = 0;
  bool isInIndexOrder = false;  ///< whether the boxes are in the order of their indices

  /// Sets the number of lanes, and computes the numbers of blocks from it. @return the number of
  /// all blocks
  std::uint32_t cover(std::uint32_t lanes) {
    boxes = lanes;
    leafBlocks = blocksOver(lanes);
    const std::uint32_t all = forLevels(leafBlocks, [](auto...) {});
    root = all - 1;
    return all;
  }

  static constexpr std::uint32_t blocksOver(std::uint32_t children) {
    return (children + kLanes - 1) / kLanes;
  }

  /// Calls level(first child, number of children, first parent) for each level of parents, from the
  /// leaf blocks' parents to the root. A single leaf block has a parent, too.
  /// @return the number of all blocks
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

/// Boxes packed into blocks. Blocks name boxes by their indices in `boxes`.
struct PackedBoxes {
  BlockTree tree;
  View<const Aabb> boxes;
  View<const Filter> filters;           ///< by box, or empty
  View<const std::uint32_t> oversized;  ///< boxes that are not in the tree
  View<const std::uint32_t> nan;        ///< boxes with a NaN, not in the tree; they overlap nothing
};

/// Calls visit(index, box) for each box that is in the tree or oversized.
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
