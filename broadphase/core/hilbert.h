// SPDX-License-Identifier: Zlib
// Computes keys along a Hilbert curve. Consecutive cells of the curve touch, so consecutive boxes
// have small common bounds. A Morton curve has jumps. host/simd/codes.inl computes the same keys
// for several boxes at a time.
#pragma once

#include <cstdint>

#include "broadphase/core/morton.h"
#include "broadphase/types.h"

namespace lbvh {

/// Shifts `word` up by one bit, and appends the highest bit of `other`. That is one instruction on
/// a GPU.
GPULBVH_HD inline std::uint32_t append(std::uint32_t word, std::uint32_t other) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_l(other, word, 1);
#else
  return word << 1 | other >> 31;
#endif
}

/// The position of a cell on the curve. The cell's coordinates have kBits bits (Skilling 2004,
/// "Programming the Hilbert curve"). In the paper each level flips or exchanges the lower bits of
/// the coordinates. Here the higher bits are shifted out first, so a level works on whole words.
/// The lowest bits of these words become garbage, but are never read. Then the paper's Gray code
/// and flips follow, for all levels at once.
template <class Code, int kBits>
GPULBVH_HD inline Code placeOnCurve(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  constexpr int kAtOnce = 10;  // number of levels whose bits fit into a word
  x <<= 32 - kBits, y <<= 32 - kBits, z <<= 32 - kBits;
  Code code = 0;
  for (int done = 0; done < kBits; done += kAtOnce) {
    const int levels = kBits - done < kAtOnce ? kBits - done : kAtOnce;
    std::uint32_t word = 0;
    for (int level = 0; level < levels; ++level) {
      word = append(append(append(word, x), y), z);
      const std::uint32_t flipped =
          x ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> 31);
      const bool keepsY = y >> 31 != 0, keepsZ = z >> 31 != 0;
      const std::uint32_t turned = keepsY ? ~flipped : y;
      y = (keepsY ? y : flipped) << 1;
      x = (keepsZ ? ~turned : z) << 1;
      z = (keepsZ ? z : turned) << 1;
    }
    code = static_cast<Code>(code << 3 * levels | word);
  }
  constexpr auto kLowest = static_cast<Code>(0x9249249249249249);  // the lowest bit of each level
  code ^= (code >> 1 & static_cast<Code>(3 * kLowest)) ^ (code >> 2 & kLowest);
  Code flips = (code & kLowest) >> 3;
  for (int levels = 1; levels < kBits - 1; levels *= 2) flips ^= flips >> 3 * levels;
  return static_cast<Code>(code ^ 7 * flips);
}

/// Writes the sort key of each box, as AssignCodes does. The code of a box is its position on
/// the curve.
template <class Key>  // uint32_t: 30 bits; uint64_t: 63 bits
struct AssignHilbertCodes {
  View<const Aabb> boxes;
  const Grid* grid;
  Key* keys;
  std::uint32_t* ids;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    ids[i] = i;
    keys[i] = key(boxes[i]);
  }

  GPULBVH_HD Key key(const Aabb& box) const {
    constexpr int kBits = AssignCodes<Key>::kCodeBits / 3;
    const std::uint32_t x = grid->cell(centre(box, 0), 0, kBits);
    const std::uint32_t y = grid->cell(centre(box, 1), 1, kBits);
    const std::uint32_t z = grid->cell(centre(box, 2), 2, kBits);
    return AssignCodes<Key>::keyOf(placeOnCurve<Key, kBits>(x, y, z), box, *grid);
  }
};

/// Writes the sort keys of the boxes of several worlds. The high bits of a key are the rank of the
/// box's world (device_input.h). The low bits are the highest `codeBits` bits of the key that
/// AssignHilbertCodes writes. So large and oversized boxes come last in their world.
struct AssignWorldKeys {
  View<const Aabb> boxes;
  const std::uint32_t* ranks;
  const Grid* grid;
  int codeBits;
  std::uint64_t* keys;
  std::uint32_t* ids;

  /// @param gridBits bits of a position on the curve, per axis
  GPULBVH_HD static int codeBitsFor(int gridBits, int rankBits) {
    return 3 * gridBits + 1 < 64 - rankBits ? 3 * gridBits + 1 : 64 - rankBits;
  }

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const AssignHilbertCodes<std::uint64_t> ofOneWorld{boxes, grid, nullptr, nullptr};
    ids[i] = i;
    keys[i] = std::uint64_t{ranks[i]} << codeBits | ofOneWorld.key(boxes[i]) >> (64 - codeBits);
  }
};

}  // namespace lbvh
