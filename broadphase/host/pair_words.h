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
};

}  // namespace lbvh
