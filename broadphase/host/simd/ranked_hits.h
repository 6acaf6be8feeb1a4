// SPDX-License-Identifier: Zlib
// Defines how pairs are stored by rank. A box has one number for each block of sixteen boxes in
// which it overlaps at least one box. The number has a bit for each box of that block. So a test of
// a box against a block yields one number. Where boxes are dense, a number stands for several
// pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/host/block_tree.h"
#include "broadphase/types.h"

namespace lbvh {

/// The boxes of one block that a box overlaps, as a 64-bit number. The highest bit is 0. The next
/// 17 bits are the low bits of the index of the box's own block. The next 4 bits are the box's lane
/// in that block, and the next 26 bits are the index of the other block. The low 16 bits stand for
/// the lanes of the other block: a bit is set if the box overlaps the lane's box. A box's rank is
/// 16 times the index of its own block, plus its lane. So sorting the numbers of a group of 2^17
/// own blocks sorts them by rank, and then by other block.
struct BlockHits {
  static constexpr int kBits = 16, kOther = 26, kLane = 4, kOwn = 17;
  static constexpr std::uint32_t kGroup = 1u << kOwn;  ///< blocks
  static_assert(kLanes == 1u << kLane && kLanes == kBits);
  static_assert(kBits + kOther + kLane + kOwn == 63);

  std::uint64_t number;

  static BlockHits of(std::uint32_t own, std::uint32_t lane, std::uint32_t other,
                      std::uint32_t bits) {
    return {(std::uint64_t{own % kGroup} << kLane | lane) << (kOther + kBits) |
            std::uint64_t{other} << kBits | bits};
  }

  std::uint64_t key() const { return number >> kBits; }
  std::uint32_t bits() const { return number & ((1u << kBits) - 1); }
  std::uint32_t other() const {
    return static_cast<std::uint32_t>(number >> kBits) & ((1u << kOther) - 1);
  }
  std::uint32_t lane() const {
    return static_cast<std::uint32_t>(number >> (kBits + kOther)) % kLanes;
  }
  /// The box's rank minus the first rank of the group.
  std::uint32_t ownRank() const { return static_cast<std::uint32_t>(number >> (kBits + kOther)); }
  /// The box's own block. @param near a block of the same group
  std::uint32_t own(std::uint32_t near) const {
    return near / kGroup * kGroup + static_cast<std::uint32_t>(number >> (kBits + kOther + kLane));
  }
};

/// The hits of all boxes, sorted by the boxes' own blocks.
struct RankedHits {
  View<const BlockHits> hits;
  std::vector<std::size_t> starts{0};  ///< by block: index of its first hit; then the hit count

  std::size_t blocks() const { return starts.size() - 1; }
  std::size_t startOf(std::size_t block) const { return starts[std::min(block, blocks())]; }

  /// Calls visit(block, index of the hit) for each hit.
  template <class Visit>
  void forAll(const Visit& visit) const {
    for (std::uint32_t block = 0; block < blocks(); ++block)
      for (std::size_t k = starts[block]; k < starts[block + 1]; ++k) visit(block, k);
  }
};

/// Calls visit(rank) for each box of a block whose bit is set.
template <class Visit>
void forHits(std::uint32_t block, std::uint32_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1)
    visit(block * kLanes + static_cast<std::uint32_t>(std::countr_zero(bits)));
}

}  // namespace lbvh
