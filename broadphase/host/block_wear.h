// SPDX-License-Identifier: Zlib
// How much wider leaf blocks have become since they were packed, because boxes were replaced in
// them (build_blocks.h), and whether queries have suffered from it for long enough. Surfaces are
// summed up, because a ray opens a block as often as its surface is large. Orders nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/host/block_tree.h"

namespace lbvh {

class BlockWear {
 public:
  /// All blocks are as they were packed.
  void begin(const BlockTree& tree);

  /// The surface of a leaf block's bounds. In whole units, so that the sum does not depend on how
  /// threads share the blocks.
  std::uint64_t surfaceOf(const BlockTree& tree, std::uint32_t leafBlock) const;
  /// By any thread.
  void replace(std::uint64_t before, std::uint64_t after) {
    surface_.fetch_add(after - before, std::memory_order_relaxed);
  }

  /// Once a step.
  void endStep();
  /// Whether blocks have been so much too wide, in so many steps, that they are to be packed again.
  bool isDue() const { return waste_ > kMostWaste * packed_; }

 private:
  static constexpr double kUnits = 16;  ///< in the mean surface of a packed block
  static constexpr double kMostUnits = double(std::uint64_t{1} << 32);  ///< in one surface
  /// Steps in which the blocks' surface is twice as large as it was, or in which it is larger than
  /// that. Queries should not suffer for longer, and packing costs a quarter of a search of all.
  static constexpr std::uint64_t kMostWaste = 32;

  double unit_ = 0;  ///< surface times this
  std::uint64_t packed_ = 0;
  std::atomic<std::uint64_t> surface_{0};
  std::uint64_t waste_ = 0;
};

}  // namespace lbvh
