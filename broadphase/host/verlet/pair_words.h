// SPDX-License-Identifier: Zlib
// Pairs as numbers.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Pairs as numbers that sort in the same order. An index takes `indexBits` bits.
struct PairWords {
  int indexBits;

  std::uint64_t of(Pair pair) const { return std::uint64_t{pair.first} << indexBits | pair.second; }
  Pair pair(std::uint64_t word) const {
    return {static_cast<std::uint32_t>(word >> indexBits),
            static_cast<std::uint32_t>(word & ((std::uint64_t{1} << indexBits) - 1))};
  }

  /// A change of a pair: the added ones sort before the removed ones.
  std::uint64_t change(Pair pair, bool isAdded) const {
    return of(pair) | std::uint64_t{!isAdded} << 2 * indexBits;
  }
  bool isAdded(std::uint64_t change) const { return change >> 2 * indexBits == 0; }
  Pair changed(std::uint64_t change) const {
    return pair(change & ((std::uint64_t{1} << 2 * indexBits) - 1));
  }
  int changeBits() const { return 2 * indexBits + 1; }
};

}  // namespace lbvh
