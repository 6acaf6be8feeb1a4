// SPDX-License-Identifier: Zlib
// Processes several boxes at once, with each coordinate in a vector. Included by kernels.inl.

/// Lanes 0 to 3 of the four rows are a matrix, so are lanes 4 to 7, and so on. Transposes each of
/// these matrices. Numbers move only within 16 bytes, because such instructions are the fastest.
inline void transpose(Floats (&rows)[4]) {
  const auto low = [](std::uint32_t i) { return i / 4 * 4 + i % 4 / 2 + i % 2 * kWidth; };
  const auto high = [](std::uint32_t i) { return i / 4 * 4 + 2 + i % 4 / 2 + i % 2 * kWidth; };
  const auto lowPairs = [](std::uint32_t i) { return i / 4 * 4 + i % 2 + i % 4 / 2 * kWidth; };
  const auto highPairs = [](std::uint32_t i) { return i / 4 * 4 + 2 + i % 2 + i % 4 / 2 * kWidth; };
  Floats low01, low23, high01, high23;
  shuffle(rows[0], rows[1], low, low01);
  shuffle(rows[2], rows[3], low, low23);
  shuffle(rows[0], rows[1], high, high01);
  shuffle(rows[2], rows[3], high, high23);
  shuffle(low01, low23, lowPairs, rows[0]);
  shuffle(low01, low23, highPairs, rows[1]);
  shuffle(high01, high23, lowPairs, rows[2]);
  shuffle(high01, high23, highPairs, rows[3]);
}

/// kWidth boxes, one in each lane.
struct Boxes {
  Floats lo[3], hi[3];

  /// @param box box(i) is the box for lane i
  template <class Box>
  explicit Boxes(const Box& box) {
    static_assert(sizeof(Aabb) == 6 * sizeof(float), "min, then max");
    Floats low[4], high[4];  // the first four numbers of each box, and the last four
    for (std::uint32_t row = 0; row < 4; ++row) {
      const float* first[kWidth / 4];
      const float* last[kWidth / 4];
      for (std::uint32_t k = 0; k < kWidth / 4; ++k) {
        first[k] = reinterpret_cast<const float*>(&box(4 * k + row));
        last[k] = first[k] + 2;
      }
      Simd::load(first, low[row]);
      Simd::load(last, high[row]);
    }
    transpose(low);
    transpose(high);
    for (int axis = 0; axis < 3; ++axis) {
      lo[axis] = low[axis];
      hi[axis] = high[axis + 1];
    }
  }

  void centre(int axis, Floats& out) const { out = 0.5f * lo[axis] + 0.5f * hi[axis]; }

  /// Sets the lanes in which the box is ordinary, as classify() defines it. A NaN fails every
  /// comparison.
  void areOrdinary(Integers& are) const {
    are = (lo[0] >= -kGiant) & (hi[0] <= kGiant);
    for (int axis = 1; axis < 3; ++axis) are &= (lo[axis] >= -kGiant) & (hi[axis] <= kGiant);
  }

  /// Sets the lanes in which the box is ordinary and not inverted.
  void areMeasured(Integers& are) const {
    Floats low = lo[0], high = hi[0];
    are = lo[0] <= hi[0];
    for (int axis = 1; axis < 3; ++axis) {
      are &= lo[axis] <= hi[axis];
      least(lo[axis], low, low);  // a NaN has failed already
      greatest(hi[axis], high, high);
    }
    are &= (low >= -kGiant) & (high <= kGiant);
  }
};

/// Whether a mask is set in all lanes. Its lanes must be 0 or -1.
inline bool all(const Integers& mask) {
  std::uint64_t halves[kWidth / 2], every = ~std::uint64_t{0};
  std::memcpy(halves, &mask, sizeof halves);
  for (const std::uint64_t two : halves) every &= two;
  return every == ~std::uint64_t{0};
}
