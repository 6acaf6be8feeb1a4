// SPDX-License-Identifier: Zlib
// Keys along a Hilbert curve. Consecutive cells of the curve touch, so that boxes which follow each
// other have small bounds together; along a Morton curve they jump. The host has the same for
// several boxes at a time (host/simd/codes.inl).
#pragma once

#include <cstdint>

#include "broadphase/core/morton.h"
#include "broadphase/types.h"

namespace lbvh {

/// The cell's coordinates of kBits bits become its place on the curve, spread over the axes: bit b
/// of x, y and z are bits 3 b + 2, 3 b + 1 and 3 b of it. Skilling 2004, "Programming the Hilbert
/// curve".
template <int kBits>
LBVH_HD inline void toHilbert(std::uint32_t& x, std::uint32_t& y, std::uint32_t& z) {
  const auto turn = [&x](std::uint32_t& cell, int bit) {
    const std::uint32_t low = (1u << bit) - 1;
    if ((cell >> bit & 1u) != 0) {
      x ^= low;
    } else {
      const std::uint32_t swapped = (x ^ cell) & low;
      cell ^= swapped;
      x ^= swapped;
    }
  };
  for (int bit = kBits - 1; bit > 0; --bit) {
    turn(x, bit);
    turn(y, bit);
    turn(z, bit);
  }
  y ^= x;
  z ^= y;
  std::uint32_t flips = 0;
  for (int bit = kBits - 1; bit > 0; --bit)
    if ((z >> bit & 1u) != 0) flips ^= (1u << bit) - 1;
  x ^= flips;
  y ^= flips;
  z ^= flips;
}

/// Writes the key of each box: its place on the curve; behind all of them, as with AssignCodes.
template <class Key>  // uint32_t: 30 bits; uint64_t: 63 bits
struct AssignHilbertCodes {
  View<const Aabb> boxes;
  const Grid* grid;
  Key* keys;
  std::uint32_t* ids;

  LBVH_HD void operator()(std::uint32_t i) const {
    ids[i] = i;
    keys[i] = key(boxes[i]);
  }

  LBVH_HD Key key(const Aabb& box) const {
    const BoxClass boxClass = classify(box);
    if (boxClass != BoxClass::ordinary) return AssignCodes<Key>::keyBehindCodes(boxClass);
    constexpr int kBits = AssignCodes<Key>::kCodeBits / 3;
    std::uint32_t x = grid->cell(centre(box, 0), 0, kBits);
    std::uint32_t y = grid->cell(centre(box, 1), 1, kBits);
    std::uint32_t z = grid->cell(centre(box, 2), 2, kBits);
    toHilbert<kBits>(x, y, z);
    if constexpr (sizeof(Key) == 4) return morton30(x, y, z);
    return static_cast<Key>(morton63(x, y, z));
  }
};

/// The key of a box in one of several worlds: its rank, then as much as fits of its place on the
/// curve, oversized boxes last. See device_input.h for ranks.
struct AssignWorldKeys {
  View<const Aabb> boxes;
  const std::uint32_t* ranks;
  const Grid* grid;
  int codeBits;
  std::uint64_t* keys;
  std::uint32_t* ids;

  /// @param gridBits of the places on the curve, for each axis
  LBVH_HD static int codeBitsFor(int gridBits, int rankBits) {
    return 3 * gridBits < 64 - rankBits ? 3 * gridBits : 64 - rankBits;
  }

  LBVH_HD void operator()(std::uint32_t i) const {
    using Codes = AssignHilbertCodes<std::uint64_t>;
    const std::uint64_t last = (std::uint64_t{1} << codeBits) - 1;
    const bool isOrdinary = classify(boxes[i]) == BoxClass::ordinary;
    const std::uint64_t code = Codes{boxes, grid, nullptr, nullptr}.key(boxes[i]);
    ids[i] = i;
    keys[i] = std::uint64_t{ranks[i]} << codeBits | (isOrdinary ? code >> (63 - codeBits) : last);
  }
};

}  // namespace lbvh
