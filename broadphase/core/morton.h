// SPDX-License-Identifier: Zlib
// Runs stages 1 and 2: computes the class of each box, the bounds of the scene, and Morton codes on
// a grid. The grid affects only the speed. The pairs are the same with any grid.
#pragma once

#include <cstdint>
#include <cstring>

#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// A box that extends beyond +-kGiant on any axis is giant. Boxes of Bullet's planes are giant:
/// they reach to 1e18, or to 1e30 with double precision.
inline constexpr float kGiant = 1e17f;

enum class BoxClass { ordinary, oversized, nan };

/// Ordinary boxes go into the tree. Inverted boxes are ordinary, too: a box that overlaps an
/// inverted box also overlaps bounds that include the inverted box's corners. Giant and infinite
/// boxes are oversized. They would enlarge the bounds of every ancestor, so they are kept out of a
/// tree, or are its last leaves. A box with a NaN overlaps nothing.
GPULBVH_HD inline BoxClass classify(const Aabb& box) {
  bool giant = false, number = true;
  for (int axis = 0; axis < 3; ++axis) {
    const float lo = box.min[axis], hi = box.max[axis];
    giant |= (lo < -kGiant) | (hi > kGiant);
    number &= (lo == lo) & (hi == hi);
  }
  return !number ? BoxClass::nan : giant ? BoxClass::oversized : BoxClass::ordinary;
}

GPULBVH_HD inline bool isInverted(const Aabb& box) {
  return box.min[0] > box.max[0] || box.min[1] > box.max[1] || box.min[2] > box.max[2];
}

/// Halves before adding, so that the sum cannot overflow. Halving is exact except for denormals.
GPULBVH_HD inline float centre(const Aabb& box, int axis) {
  return 0.5f * box.min[axis] + 0.5f * box.max[axis];
}

/// The exponent of x >= 0: floor(log2(x)), or -127 for zero and denormals.
GPULBVH_HD inline int exponentOf(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 23 & 255u) - 127;
}

/// 2^exponent, for an exponent from -126 to 127.
GPULBVH_HD inline float lengthOf(int exponent) {
  const std::uint32_t bits = static_cast<std::uint32_t>(exponent + 127) << 23;
  float length;
  std::memcpy(&length, &bits, sizeof length);
  return length;
}

/// The longest side of a box; 0 if no side is positive.
GPULBVH_HD inline float longestSide(const float (&min)[3], const float (&max)[3]) {
  float longest = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const float length = max[axis] - min[axis];
    longest = length > longest ? length : longest;
  }
  return longest;
}

struct MeasureScene {
  View<const Aabb> boxes;

  GPULBVH_HD SceneBounds operator()(std::uint32_t i) const {
    const Aabb box = boxes[i];
    SceneBounds one;
    const BoxClass boxClass = classify(box);
    one.oversized = boxClass == BoxClass::oversized;
    one.nan = boxClass == BoxClass::nan;
    if (boxClass != BoxClass::ordinary) return one;
    one.ordinary = 1;
    if (isInverted(box)) return one;
    one.measured = 1;
    for (int axis = 0; axis < 3; ++axis) one.lo[axis] = one.hi[axis] = centre(box, axis);
    one.exponents = exponentOf(longestSide(box.min, box.max));
    return one;
  }
};

/// Moves bit i of v to bit 3 i, for the low 10 bits. Each multiplication adds a shifted copy, and
/// each mask removes the surplus bits (Karras 2012, "Thinking Parallel, Part III").
GPULBVH_HD inline std::uint32_t spreadBits10(std::uint32_t v) {
  v = (v * 0x00010001u) & 0xFF0000FFu;
  v = (v * 0x00000101u) & 0x0F00F00Fu;
  v = (v * 0x00000011u) & 0xC30C30C3u;
  return (v * 0x00000005u) & 0x49249249u;
}

/// Moves bit i of v to bit 3 i, for the low 21 bits.
GPULBVH_HD inline std::uint64_t spreadBits21(std::uint64_t v) {
  v = (v | v << 32) & 0x001F00000000FFFFull;
  v = (v | v << 16) & 0x001F0000FF0000FFull;
  v = (v | v << 8) & 0x100F00F00F00F00Full;
  v = (v | v << 4) & 0x10C30C30C30C30C3ull;
  return (v | v << 2) & 0x1249249249249249ull;
}

/// Interleaves the bits of a cell: x at bits 2, 5, 8 and so on, y at 1, 4, 7, z at 0, 3, 6.
GPULBVH_HD inline std::uint32_t morton30(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return spreadBits10(x) << 2 | spreadBits10(y) << 1 | spreadBits10(z);
}
GPULBVH_HD inline std::uint64_t morton63(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return spreadBits21(x) << 2 | spreadBits21(y) << 1 | spreadBits21(z);
}

/// Whether a box is much longer than most boxes of the scene, such as a floor among debris.
GPULBVH_HD inline bool isLarge(const Aabb& box, const Grid& grid) {
  return longestSide(box.min, box.max) >= grid.largeFrom;
}

/// Writes the sort key of each box. The highest bits of a key are the box's layer. The other bits
/// are its Morton code. The layers are, in this order: ordinary boxes, large ones, oversized ones,
/// and boxes with a NaN. The search for a box visits only boxes later in the order. So the pairs of
/// a large box are found in the searches for its many small partners, in parallel. Also, a large
/// box does not widen the bounds of smaller ones. Vinkler, Bittner and Havran, "Extended Morton
/// Codes for High Performance Bounding Volume Hierarchy Construction" (2017), also put sizes into
/// codes.
template <class Key>  // uint32_t: 30-bit codes; uint64_t: 63-bit codes
struct AssignCodes {
  static constexpr int kCodeBits = sizeof(Key) == 4 ? 30 : 63;
  static constexpr int kKeyBits = kCodeBits + 1;

  /// The lowest bit of a key that a sort needs for a grid of 2^gridBits cells per axis. The high
  /// bits of a code are the code in a coarser grid.
  GPULBVH_HD static constexpr int lowestBit(int gridBits) { return kCodeBits - 3 * gridBits; }

  View<const Aabb> boxes;
  const Grid* grid;
  Key* keys;
  std::uint32_t* ids;
  std::uint32_t* arrivals;       ///< for BuildHierarchy, reset here to save a pass; or null
  int gridBits = kCodeBits / 3;  ///< bits of the codes per axis; lower bits are 0

  GPULBVH_HD void operator()(std::uint32_t i) const {
    if (arrivals != nullptr) arrivals[i] = kNullIndex;
    ids[i] = i;
    keys[i] = key(boxes[i]);
  }

  /// The key of a box with this code. The key of a large box lacks the lowest two bits of its code.
  GPULBVH_HD static Key keyOf(Key code, const Aabb& box, const Grid& grid) {
    constexpr Key kUnit = Key{1} << (kCodeBits - 2);
    const BoxClass boxClass = classify(box);
    if (boxClass != BoxClass::ordinary) return (boxClass == BoxClass::nan ? 7 : 6) * kUnit;
    return isLarge(box, grid) ? 4 * kUnit | code >> 2 : code;
  }

  GPULBVH_HD Key key(const Aabb& box) const {
    constexpr int bits = kCodeBits / 3;
    const std::uint32_t x = grid->cell(centre(box, 0), 0, bits);
    const std::uint32_t y = grid->cell(centre(box, 1), 1, bits);
    const std::uint32_t z = grid->cell(centre(box, 2), 2, bits);
    Key code;
    if constexpr (sizeof(Key) == 4)
      code = morton30(x, y, z);
    else
      code = morton63(x, y, z);
    return keyOf(code, box, *grid) >> lowestBit(gridBits) << lowestBit(gridBits);
  }
};

}  // namespace lbvh
