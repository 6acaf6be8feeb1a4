// SPDX-License-Identifier: Zlib
// Runs stages 1 and 2 on the host: computes bounds and Hilbert codes of several boxes at a time,
// with the vector types of lanes.h. Included by kernels.inl.

/// measure() for at most 2^20 boxes, so that the sums of their exponents fit into lanes.
inline SceneBounds measureSome(View<const Aabb> boxes, std::size_t begin, std::size_t end) {
  SceneBounds sum;
  Words exponents{};
  std::uint32_t vectors = 0;
  Floats low[3], high[3];
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = Floats{} + SceneBounds::kFar;
    high[axis] = Floats{} - SceneBounds::kFar;
  }
  std::size_t from = begin;
  for (; from + kWidth <= end; from += kWidth) {
    const Boxes several([&](std::uint32_t i) -> const Aabb& { return boxes[from + i]; });
    Integers areMeasured;
    several.areMeasured(areMeasured);
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
    Words bits;
    bitsAs(extent, bits);
    exponents += bits >> 23u;  // the sign bit is 0, because no extent is negative
    vectors += 1;
  }
  sum.measured += vectors * kWidth;
  sum.ordinary += vectors * kWidth;
  sum.exponents -= std::int64_t{127} * vectors * kWidth;
  for (; from < end; ++from) sum += MeasureScene{boxes}(static_cast<std::uint32_t>(from));
  for (std::uint32_t i = 0; i < kWidth; ++i) {
    SceneBounds lane;
    for (int axis = 0; axis < 3; ++axis) {
      lane.lo[axis] = low[axis][i];
      lane.hi[axis] = high[axis][i];
    }
    lane.exponents = exponents[i];
    sum += lane;
  }
  return sum;
}

/// The sum of MeasureScene (morton.h) over boxes [begin, end).
SceneBounds measure(View<const Aabb> boxes, std::size_t begin, std::size_t end) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;  // the limit of measureSome()
  SceneBounds sum;
  for (; begin < end; begin += kAtOnce)
    sum += measureSome(boxes, begin, std::min(end, begin + kAtOnce));
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

/// One level of placeOnCurve() (hilbert.h). Levels go from the highest bit to the lowest. The bit
/// of this level is the sign of a cell's lane. Appends the level's digit of three bits to the code.
/// @param parity in each lane -1 if an odd number of the bits so far was set, else 0
template <class Cells>
inline void appendDigit(Cells (&cells)[3], Cells& parity, Cells& code) {
  using Lane = std::decay_t<decltype(code[0])>;
  constexpr auto kSign = static_cast<Lane>(8 * sizeof(Lane) - 1);
  constexpr auto kOne = static_cast<Lane>(1);
  Cells& x = cells[0];
  for (int axis = 0; axis < 3; ++axis) {
    Cells& cell = cells[axis];
    const Cells isSet = cell >> kSign;
    parity ^= isSet;
    code = code + code - parity;
    if (axis == 0) {
      x ^= isSet;
      continue;
    }
    // If the bit is set, flips the lower bits of x. Otherwise exchanges those of x and the cell.
    const Cells changes = (x ^ cell) | isSet;
    x ^= changes;
    cell ^= changes & ~isSet;
  }
  for (Cells& cell : cells) cell <<= kOne;
}

/// Appends the next kDigits digits. Each step depends on the previous one, so two vectors of cells
/// are processed at once.
template <int kDigits, class Cells>
inline void appendDigits(Cells (&cells)[2][3], Cells (&parity)[2], Cells (&codes)[2]) {
  for (int digit = 0; digit < kDigits; ++digit)
    for (int k = 0; k < 2; ++k) appendDigit(cells[k], parity[k], codes[k]);
}

/// Writes codes of 30 bits for 4 kWidth cells. A cell of ten bits fits into half a lane, and so do
/// five digits. So two vectors of cells are packed into one.
inline void writeCodes(Integers (&cells)[4][3], std::uint32_t* keys) {
  using Halves = Lanes<std::int16_t, 2 * kWidth>;
  constexpr int kUp = 16 - 10;  // the highest bit of a cell becomes the sign of its half
  Halves halves[2][3], parity[2] = {}, high[2] = {}, low[2] = {};
  for (std::uint32_t k = 0; k < 2; ++k)
    for (int axis = 0; axis < 3; ++axis) {
      const Integers both = cells[2 * k][axis] << kUp | cells[2 * k + 1][axis] << (16 + kUp);
      bitsAs(both, halves[k][axis]);
    }
  appendDigits<5>(halves, parity, high);
  appendDigits<5>(halves, parity, low);
  for (std::uint32_t k = 0; k < 2; ++k) {
    Words upper, lower, codes[2];
    bitsAs(high[k], upper);
    bitsAs(low[k], lower);
    codes[0] = upper << 16u >> 1u | (lower & 0xFFFFu);
    codes[1] = upper >> 16u << 15u | lower >> 16u;
    std::memcpy(keys + 2 * k * kWidth, codes, sizeof codes);
  }
}

/// Writes codes of 63 bits for 2 kWidth cells: one digit, then ten, then ten more.
inline void writeCodes(Integers (&cells)[2][3], std::uint64_t* keys) {
  Integers parity[2] = {}, high[2] = {}, middle[2] = {}, low[2] = {};
  constexpr int kUp = 32 - 21;
  for (auto& vector : cells)
    for (Integers& cell : vector) cell <<= kUp;
  appendDigits<1>(cells, parity, high);
  appendDigits<10>(cells, parity, middle);
  appendDigits<10>(cells, parity, low);
  const auto word = [](std::int32_t lane) { return static_cast<std::uint64_t>(lane); };
  for (std::uint32_t k = 0; k < 2; ++k)
    for (std::uint32_t i = 0; i < kWidth; ++i)
      keys[k * kWidth + i] = word(high[k][i]) << 60 | word(middle[k][i]) << 30 | word(low[k][i]);
}

/// Number of vectors of boxes that are coded at once.
template <class Key>
constexpr std::uint32_t kVectors = sizeof(Key) == 4 ? 4 : 2;

/// Writes the codes of kVectors<Key> * kWidth boxes.
/// @return whether all boxes are ordinary; other boxes need another key
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

/// Computes the keys of AssignHilbertCodes (hilbert.h) for boxes [begin, end).
/// @param grid one without large boxes
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
    for (std::size_t i = from; i < from + count; ++i)
      keys[i] = AssignCodes<Key>::keyOf(keys[i], boxes[i], grid);
  }
}
