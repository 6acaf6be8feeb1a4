// SPDX-License-Identifier: Zlib
// Stages 1 and 2: which boxes go into the tree, their bounds, and the Morton codes over a grid.
// Nothing here decides about overlaps: any grid gives the same pairs, only at another speed.
#pragma once

#include <cstdint>
#include <cstring>

#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// A box that reaches beyond this is a giant: Bullet's planes (1e18, or 1e30 in double) are.
inline constexpr float kGiant = 1e17f;

enum class BoxClass { ordinary, oversized, nan };

/// Ordinary boxes go into the tree. Inverted boxes are ordinary: whatever overlaps one also
/// overlaps bounds that include its corners. Giant and infinite boxes are oversized. They would
/// spoil the bounds of every ancestor, so they stay out of the tree and are tested against all
/// others. A box with a NaN overlaps nothing.
LBVH_HD inline BoxClass classify(const Aabb& box) {
  bool giant = false, number = true;
  for (int axis = 0; axis < 3; ++axis) {
    const float lo = box.min[axis], hi = box.max[axis];
    giant |= (lo < -kGiant) | (hi > kGiant);
    number &= (lo == lo) & (hi == hi);
  }
  return !number ? BoxClass::nan : giant ? BoxClass::oversized : BoxClass::ordinary;
}

LBVH_HD inline bool isInverted(const Aabb& box) {
  return box.min[0] > box.max[0] || box.min[1] > box.max[1] || box.min[2] > box.max[2];
}

/// Halved before the sum, so that it cannot overflow; exact but for denormals.
LBVH_HD inline float centre(const Aabb& box, int axis) {
  return 0.5f * box.min[axis] + 0.5f * box.max[axis];
}

/// floor(log2(x)) for x > 0, -127 for zero and denormals: the exponent bits.
LBVH_HD inline int exponentOf(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 23 & 255u) - 127;
}

struct MeasureScene {
  View<const Aabb> boxes;

  LBVH_HD SceneBounds operator()(std::uint32_t i) const {
    const Aabb box = boxes[i];
    SceneBounds one;
    const BoxClass boxClass = classify(box);
    one.oversized = boxClass == BoxClass::oversized;
    one.nan = boxClass == BoxClass::nan;
    if (boxClass != BoxClass::ordinary) return one;
    one.ordinary = 1;
    if (isInverted(box)) return one;
    one.measured = 1;
    float extent = 0;
    for (int axis = 0; axis < 3; ++axis) {
      one.lo[axis] = one.hi[axis] = centre(box, axis);
      const float length = box.max[axis] - box.min[axis];
      extent = length > extent ? length : extent;
    }
    one.exponents = exponentOf(extent);
    return one;
  }
};

/// The low 10 bits of v with two zeros between each: bit i moves to bit 3 i. Each multiplication
/// adds a copy that is shifted up, and each mask drops what is double (Karras 2012, "Thinking
/// Parallel, Part III").
LBVH_HD inline std::uint32_t spreadBits10(std::uint32_t v) {
  v = (v * 0x00010001u) & 0xFF0000FFu;
  v = (v * 0x00000101u) & 0x0F00F00Fu;
  v = (v * 0x00000011u) & 0xC30C30C3u;
  return (v * 0x00000005u) & 0x49249249u;
}

/// The low 21 bits of v with two zeros between each.
LBVH_HD inline std::uint64_t spreadBits21(std::uint64_t v) {
  v = (v | v << 32) & 0x001F00000000FFFFull;
  v = (v | v << 16) & 0x001F0000FF0000FFull;
  v = (v | v << 8) & 0x100F00F00F00F00Full;
  v = (v | v << 4) & 0x10C30C30C30C30C3ull;
  return (v | v << 2) & 0x1249249249249249ull;
}

/// Bits of cell x at 2, 5, 8, ...; of y at 1, 4, ...; of z at 0, 3, ...
LBVH_HD inline std::uint32_t morton30(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return spreadBits10(x) << 2 | spreadBits10(y) << 1 | spreadBits10(z);
}
LBVH_HD inline std::uint64_t morton63(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return spreadBits21(x) << 2 | spreadBits21(y) << 1 | spreadBits21(z);
}

/// Writes the sort key of each box. An ordinary box has its Morton code; behind all codes come the
/// oversized boxes, then the boxes with a NaN. So the sort leaves the three kinds one behind the
/// other.
template <class Key>  // uint32_t: 30-bit codes; uint64_t: 63-bit codes
struct AssignCodes {
  static constexpr int kCodeBits = sizeof(Key) == 4 ? 30 : 63;
  static constexpr int kKeyBits = kCodeBits + 1;

  /// The lowest bit that a sort by a grid of 2^gridBits cells needs: a code begins with those of
  /// all coarser grids.
  static constexpr int lowestBit(int gridBits) { return kCodeBits - 3 * gridBits; }

  View<const Aabb> boxes;
  const Grid* grid;
  Key* keys;
  std::uint32_t* ids;
  std::uint32_t* arrivals;  ///< of the hierarchy stage, reset here to save a pass; or null

  LBVH_HD void operator()(std::uint32_t i) const {
    if (arrivals != nullptr) arrivals[i] = kNullIndex;
    ids[i] = i;
    keys[i] = key(boxes[i]);
  }

  /// Of a box that is not ordinary.
  LBVH_HD static Key keyBehindCodes(BoxClass boxClass) {
    return Key{boxClass == BoxClass::nan ? 3u : 2u} << (kCodeBits - 1);
  }

  LBVH_HD Key key(const Aabb& box) const {
    const BoxClass boxClass = classify(box);
    if (boxClass != BoxClass::ordinary) return keyBehindCodes(boxClass);
    constexpr int bits = kCodeBits / 3;
    const std::uint32_t x = grid->cell(centre(box, 0), 0, bits);
    const std::uint32_t y = grid->cell(centre(box, 1), 1, bits);
    const std::uint32_t z = grid->cell(centre(box, 2), 2, bits);
    if constexpr (sizeof(Key) == 4) return morton30(x, y, z);
    return static_cast<Key>(morton63(x, y, z));
  }
};

}  // namespace lbvh
