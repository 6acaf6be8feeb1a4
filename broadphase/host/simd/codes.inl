// SPDX-License-Identifier: Zlib
// Stages 1 and 2 on the host: bounds and Hilbert codes of kWidth boxes at a time, by the vector
// types of lanes.h alone. Included by kernels.inl.

/// Turns cells into Hilbert codes, spread over the axes: bit b of x, y and z are bits 3 b + 2,
/// 3 b + 1 and 3 b of the code. Skilling 2004, "Programming the Hilbert curve".
template <int kBits>
inline void toHilbert(Words& x, Words& y, Words& z) {
  const auto turn = [&x](Words& cell, int bit) {
    const std::uint32_t low = (1u << bit) - 1;
    const Words isSet = -(cell >> bit & 1u);
    const Words swapped = (x ^ cell) & ~isSet & low;
    cell ^= swapped;
    x ^= swapped | (isSet & low);
  };
  for (int bit = kBits - 1; bit > 0; --bit) {
    turn(x, bit);
    turn(y, bit);
    turn(z, bit);
  }
  y ^= x;
  z ^= y;
  Words flips{};
  for (int bit = kBits - 1; bit > 0; --bit) flips ^= -(z >> bit & 1u) & ((1u << bit) - 1);
  x ^= flips;
  y ^= flips;
  z ^= flips;
}

/// kWidth boxes, each coordinate in a vector.
struct Boxes {
  Floats lo[3], hi[3];

  explicit Boxes(const Aabb* boxes) {
    for (std::uint32_t i = 0; i < kWidth; ++i)
      for (int axis = 0; axis < 3; ++axis) {
        lo[axis][i] = boxes[i].min[axis];
        hi[axis][i] = boxes[i].max[axis];
      }
  }

  void centre(int axis, Floats& out) const { out = 0.5f * lo[axis] + 0.5f * hi[axis]; }

  /// Whether classify() calls all of them ordinary.
  bool areOrdinary() const {
    Integers odd{};
    for (int axis = 0; axis < 3; ++axis)
      odd |= (lo[axis] < -kGiant) | (hi[axis] > kGiant) | (lo[axis] != lo[axis]) |
             (hi[axis] != hi[axis]);
    return !any(odd);
  }

  bool areInverted() const { return any((lo[0] > hi[0]) | (lo[1] > hi[1]) | (lo[2] > hi[2])); }

  static bool any(const Integers& lanes) {
    std::int32_t all = 0;
    for (std::uint32_t i = 0; i < kWidth; ++i) all |= lanes[i];
    return all != 0;
  }
};

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
    const Boxes several(&boxes[from]);
    if (!several.areOrdinary() || several.areInverted()) {
      for (std::uint32_t i = 0; i < kWidth; ++i)
        sum += MeasureScene{boxes}(static_cast<std::uint32_t>(from + i));
      continue;
    }
    Floats extent{};
    for (int axis = 0; axis < 3; ++axis) {
      Floats centres;
      several.centre(axis, centres);
      select(centres < low[axis], centres, low[axis], low[axis]);
      select(centres > high[axis], centres, high[axis], high[axis]);
      const Floats length = several.hi[axis] - several.lo[axis];
      select(length > extent, length, extent, extent);
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

/// Grid::cell() of kWidth centres on one axis.
inline void toCells(const Grid& grid, int axis, int bits, const Floats& centres, Words& cells) {
  const auto count = static_cast<float>(1 << bits);
  Floats t = (centres - grid.lo[axis]) * grid.perLength * count;
  select(t > 0.0f, t, Floats{}, t);
  select(t < count - 1, t, Floats{} + (count - 1), t);
  Integers integers;
  toIntegers(t, integers);
  bitsAs(integers, cells);
}

/// AssignCodes (morton.h) along a Hilbert curve.
template <class Key>
void assignKeys(View<const Aabb> boxes, const Grid& grid, Key* keys, std::uint32_t* ids,
                std::size_t begin, std::size_t end) {
  constexpr int kBits = AssignCodes<Key>::kCodeBits / 3;
  for (std::size_t from = begin; from < end; from += kWidth) {
    const std::size_t count = std::min<std::size_t>(kWidth, end - from);
    Aabb last[kWidth] = {};  // where there are fewer left
    if (count < kWidth) std::copy_n(&boxes[from], count, last);
    const Boxes several(count < kWidth ? last : &boxes[from]);
    Words cells[3];
    for (int axis = 0; axis < 3; ++axis) {
      Floats centres;
      several.centre(axis, centres);
      toCells(grid, axis, kBits, centres, cells[axis]);
    }
    toHilbert<kBits>(cells[0], cells[1], cells[2]);
    for (std::uint32_t i = 0; i < count; ++i) {
      if constexpr (sizeof(Key) == 4)
        keys[from + i] = morton30(cells[0][i], cells[1][i], cells[2][i]);
      else
        keys[from + i] = morton63(cells[0][i], cells[1][i], cells[2][i]);
      ids[from + i] = static_cast<std::uint32_t>(from + i);
    }
    if (several.areOrdinary()) continue;
    for (std::size_t i = from; i < from + count; ++i) {
      const BoxClass boxClass = classify(boxes[i]);
      if (boxClass != BoxClass::ordinary) keys[i] = AssignCodes<Key>::keyBehindCodes(boxClass);
    }
  }
}
