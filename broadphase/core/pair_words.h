// SPDX-License-Identifier: Zlib
// Encodes pairs, and changes of pairs, as numbers that can be sorted.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// Encodes pairs as numbers with the same order. An index takes `indexBits` bits.
struct PairWords {
  int indexBits;

  std::uint64_t of(Pair pair) const { return std::uint64_t{pair.first} << indexBits | pair.second; }
  Pair pair(std::uint64_t word) const {
    return {static_cast<std::uint32_t>(word >> indexBits),
            static_cast<std::uint32_t>(word & ((std::uint64_t{1} << indexBits) - 1))};
  }

  /// Encodes the change of a pair. All added pairs sort before all removed ones.
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
