// SPDX-License-Identifier: Zlib
// Stages 1 and 2 on the host: bounds and Hilbert codes of several boxes at a time, by the vector
// types of lanes.h. Included by kernels.inl.

/// The sum of MeasureScene (morton.h) over boxes [begin, end).
SceneBounds measure(View<const Aabb> boxes, std::size_t begin, std::size_t end) {
  SceneBounds sum;
  Floats low[3], high[3];
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = Floats{} + SceneBounds::kFar;
    high[axis] = Floats{} - SceneBounds::kFar;
  }
  std::size_t from = begin;
  for (; from + kWidth <= end; from += kWidth) {
    const Boxes several([&](std::uint32_t i) -> const Aabb& { return boxes[from + i]; });
    Integers areMeasured;
    several.areOrdinary(areMeasured);
    several.clearInverted(areMeasured);
    if (!all(areMeasured)) {
      for (std::uint32_t i = 0; i < kWidth; ++i)
        sum += MeasureScene{boxes}(static_cast<std::uint32_t>(from + i));
      continue;
    }
    Floats extent{};
    for (int axis = 0; axis < 3; ++axis) {
      Floats centres;
      several.centre(axis, centres);
      least(centres, low[axis], low[axis]);
      greatest(high[axis], centres, high[axis]);
      const Floats length = several.hi[axis] - several.lo[axis];
      greatest(extent, length, extent);
    }
    Words exponents;
    bitsAs(extent, exponents);
    exponents = (exponents >> 23 & 255u) - 127u;
    std::uint32_t total = 0;
    for (std::uint32_t i = 0; i < kWidth; ++i) total += exponents[i];
    sum.exponents += static_cast<std::int32_t>(total);
    sum.measured += kWidth;
    sum.ordinary += kWidth;
  }
  for (; from < end; ++from) sum += MeasureScene{boxes}(static_cast<std::uint32_t>(from));
  for (std::uint32_t i = 0; i < kWidth; ++i) {
    SceneBounds lane;
    for (int axis = 0; axis < 3; ++axis) {
      lane.lo[axis] = low[axis][i];
      lane.hi[axis] = high[axis][i];
    }
    sum += lane;
  }
  return sum;
}

/// Grid::cell() of several centres on one axis.
inline void toCells(const Grid& grid, int axis, int bits, const Floats& centres, Integers& cells) {
  const auto count = static_cast<float>(1 << bits);
  Floats t = (centres - grid.lo[axis]) * grid.perLength * count;
  greatest(Floats{}, t, t);  // zero for a NaN
  least(t, Floats{} + (count - 1), t);
  toIntegers(t, cells);
}

/// One bit of toHilbert(): one level of the curve, in signed lanes.
template <int kBit, class Lane, class Cells>
inline void turn(Cells (&cells)[3]) {
  constexpr auto kSign = static_cast<Lane>(8 * sizeof(Lane) - 1);
  constexpr auto kUp = static_cast<Lane>(kSign - kBit), kLow = static_cast<Lane>((1 << kBit) - 1);
  Cells& x = cells[0];
  x ^= (x << kUp >> kSign) & kLow;
  for (int axis = 1; axis < 3; ++axis) {
    // Flips the lower bits of x where the bit is set, else exchanges those of x and the cell.
    Cells& cell = cells[axis];
    const Cells isSet = cell << kUp >> kSign;
    const Cells changes = ((x ^ cell) | isSet) & kLow;
    x ^= changes;
    cell ^= changes & ~isSet;
  }
}

/// toHilbert (hilbert.h) of several cells, in signed lanes of more than kBits bits. Each step waits
/// for the one before: the processor works on two vectors of cells at once.
template <int kBits, class Lane, int kBit = kBits - 1, class Cells>
inline void toHilbert(Cells (&cells)[2][3]) {
  if constexpr (kBit > 0) {
    turn<kBit, Lane>(cells[0]);
    turn<kBit, Lane>(cells[1]);
    toHilbert<kBits, Lane, kBit - 1>(cells);
  } else {
    for (auto& [x, y, z] : cells) {
      y ^= x;
      z ^= y;
      Cells flips = z >> Lane{1};  // each bit becomes the parity of those above it
      for (int bits = 1; bits < kBits; bits *= 2) flips ^= flips >> static_cast<Lane>(bits);
      x ^= flips;
      y ^= flips;
      z ^= flips;
    }
  }
}

/// spreadBits10 (morton.h) without multiplications, which SSE2 has not.
inline void spreadTenBits(Words& v) {
  v &= 1023u;
  v = (v | v << 16u) & 0xFF0000FFu;
  v = (v | v << 8u) & 0x0F00F00Fu;
  v = (v | v << 4u) & 0xC30C30C3u;
  v = (v | v << 2u) & 0x49249249u;
}

/// morton30 (morton.h) of several cells, by their ten bits from bit `shift` on.
inline void interleave(const Words (&cells)[3], std::uint32_t shift, Words& out) {
  Words spread[3];
  for (int axis = 0; axis < 3; ++axis) {
    spread[axis] = cells[axis] >> shift;
    spreadTenBits(spread[axis]);
  }
  out = spread[0] << 2u | spread[1] << 1u | spread[2];
}

/// Codes of 30 bits from 4 kWidth cells. Cells of ten bits fit into half a lane: two vectors share
/// one.
inline void writeCodes(Integers (&cells)[4][3], std::uint32_t* keys) {
  using Halves = Lanes<std::int16_t, 2 * kWidth>;
  Halves halves[2][3];
  for (std::uint32_t k = 0; k < 2; ++k)
    for (int axis = 0; axis < 3; ++axis) {
      const Integers both = cells[2 * k][axis] | cells[2 * k + 1][axis] << 16;
      bitsAs(both, halves[k][axis]);
    }
  toHilbert<10, std::int16_t>(halves);
  for (std::uint32_t k = 0; k < 2; ++k) {
    Words both[3], codes[2];
    for (int axis = 0; axis < 3; ++axis) bitsAs(halves[k][axis], both[axis]);
    interleave(both, 0, codes[0]);
    interleave(both, 16, codes[1]);
    std::memcpy(keys + 2 * k * kWidth, codes, sizeof codes);
  }
}

/// Codes of 63 bits from 2 kWidth cells: their lowest ten bits, the next ten, and the highest.
inline void writeCodes(Integers (&cells)[2][3], std::uint64_t* keys) {
  toHilbert<21, std::int32_t>(cells);
  for (std::uint32_t k = 0; k < 2; ++k) {
    Words words[3], low, middle;
    for (int axis = 0; axis < 3; ++axis) bitsAs(cells[k][axis], words[axis]);
    interleave(words, 0, low);
    interleave(words, 10, middle);
    const Words high = (words[0] >> 20u) << 2u | (words[1] >> 20u) << 1u | words[2] >> 20u;
    for (std::uint32_t i = 0; i < kWidth; ++i)
      keys[k * kWidth + i] = low[i] | std::uint64_t{middle[i]} << 30 | std::uint64_t{high[i]} << 60;
  }
}

/// So many vectors of boxes are coded at once.
template <class Key>
constexpr std::uint32_t kVectors = sizeof(Key) == 4 ? 4 : 2;

/// Writes the codes of kVectors<Key> * kWidth boxes.
/// @return whether all boxes are ordinary: the others need another key
template <class Key>
inline bool codeBoxes(const Aabb* boxes, const Grid& grid, Key* keys) {
  Integers areOrdinary[kVectors<Key>], cells[kVectors<Key>][3];
  for (std::uint32_t k = 0; k < kVectors<Key>; ++k) {
    const Boxes several([&](std::uint32_t i) -> const Aabb& { return boxes[k * kWidth + i]; });
    several.areOrdinary(areOrdinary[k]);
    for (int axis = 0; axis < 3; ++axis) {
      Floats centres;
      several.centre(axis, centres);
      toCells(grid, axis, AssignCodes<Key>::kCodeBits / 3, centres, cells[k][axis]);
    }
  }
  writeCodes(cells, keys);
  for (std::uint32_t k = 1; k < kVectors<Key>; ++k) areOrdinary[0] &= areOrdinary[k];
  return all(areOrdinary[0]);
}

/// AssignHilbertCodes (hilbert.h).
template <class Key>
void assignKeys(View<const Aabb> boxes, const Grid& grid, Key* keys, std::uint32_t* ids,
                std::size_t begin, std::size_t end) {
  constexpr std::uint32_t kCodedAtOnce = kVectors<Key> * kWidth;
  for (std::size_t from = begin; from < end; from += kCodedAtOnce) {
    const std::size_t count = std::min<std::size_t>(kCodedAtOnce, end - from);
    bool areOrdinary;
    if (count == kCodedAtOnce) {
      areOrdinary = codeBoxes(&boxes[from], grid, keys + from);
    } else {
      Aabb last[kCodedAtOnce] = {};
      Key lastKeys[kCodedAtOnce];
      std::copy_n(&boxes[from], count, last);
      areOrdinary = codeBoxes(last, grid, lastKeys);
      std::copy_n(lastKeys, count, keys + from);
    }
    for (std::size_t i = from; i < from + count; ++i) ids[i] = static_cast<std::uint32_t>(i);
    if (areOrdinary) continue;
    for (std::size_t i = from; i < from + count; ++i) {
      const BoxClass boxClass = classify(boxes[i]);
      if (boxClass != BoxClass::ordinary) keys[i] = AssignCodes<Key>::keyBehindCodes(boxClass);
    }
  }
}
