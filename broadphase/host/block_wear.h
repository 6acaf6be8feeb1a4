// SPDX-License-Identifier: Zlib
// When boxes in packed leaf blocks are replaced (blocks.h), the blocks can become wider, which
// slows queries down. Measures by how much, and decides when the blocks should be packed again. The
// measure is the sum of surface areas, because the chance that a ray opens a block is proportional
// to its surface area. Does not pack the blocks itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/host/block_tree.h"

namespace lbvh {

class BlockWear {
 public:
  /// Starts with blocks that were just packed.
  void begin(const BlockTree& tree);

  /// The surface area of a leaf block's bounds. It is an integer, so that sums do not depend on how
  /// threads share the blocks.
  std::uint64_t surfaceOf(const BlockTree& tree, std::uint32_t leafBlock) const;
  /// Adds `after` - `before` to the sum of surface areas. Any thread may call it.
  void replace(std::uint64_t before, std::uint64_t after) {
    surface_.fetch_add(after - before, std::memory_order_relaxed);
  }

  /// Records how much wider the blocks are now. Must be called once per step.
  void endStep();
  /// Whether the blocks have been too wide for too many steps, and should be packed again.
  bool isDue() const { return waste_ > kMaxWaste * packed_; }

 private:
  static constexpr double kUnits = 16;  ///< mean surface area of a packed block, in units
  /// Maximum surface area of a block, in units.
  static constexpr double kMaxUnits = double(std::uint64_t{1} << 32);
  /// Blocks are packed again after this many steps with twice the surface area or more. Steps with
  /// a smaller increase count in proportion. Packing costs a quarter of a search for the pairs of
  /// all boxes.
  static constexpr std::uint64_t kMaxWaste = 32;

  double unit_ = 0;  ///< factor from half a surface area to units
  std::uint64_t packed_ = 0;
  std::atomic<std::uint64_t> surface_{0};
  std::uint64_t waste_ = 0;
};

}  // namespace lbvh
