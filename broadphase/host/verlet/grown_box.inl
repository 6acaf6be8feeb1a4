// SPDX-License-Identifier: Zlib
// Defines how a box grows (skin.h): the size of its skin, and the test whether it has escaped.
// Included by skin.cpp.

// Found by simulations of piles, debris and a city, then confirmed by measurements.
constexpr float kSkin = 1.0f / 16;  // times a box's mean side
constexpr float kAhead = 1.8f;      // times its motion from the centre of its grown box
constexpr float kMaxAhead = 1.5f;   // times its mean side
constexpr float kMaxMotion = 2.0f;  // times its mean side; a larger motion is treated as a jump
constexpr float kLoose = 2.0f;      // times the sum of its sides; see isLoose()

#include "broadphase/host/simd/lanes.inl"

using Vector = Lanes<float, 4>;
using Mask = Lanes<std::int32_t, 4>;

/// Whether the first three lanes are set.
bool all(Mask mask) {
  mask |= Mask{0, 0, 0, -1};
  std::uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof halves);
  return (halves[0] & halves[1]) == ~std::uint64_t{0};
}

/// The corners of a box. Only the first three lanes matter.
struct Corners {
  explicit Corners(const Aabb& box) {
    Vector last;
    std::memcpy(&min, &box, sizeof min);
    std::memcpy(&last, reinterpret_cast<const char*>(&box) + sizeof box - sizeof last, sizeof last);
    shuffle(
        last, last, [](std::uint32_t i) { return (i + 1) % 4; }, max);
  }
  Vector min, max;

  float sides() const {
    const Vector length = max - min;
    return length[0] + length[1] + length[2];
  }
  bool isOrdinary() const { return all((min >= -kGiant) & (max <= kGiant)); }
};

/// Whether `outer` contains `inner` on each axis. Then every box that overlaps `inner` overlaps
/// `outer`, even if `inner` is inverted.
bool contains(const Corners& outer, const Corners& inner) {
  return all((outer.min <= inner.min) & (inner.max <= outer.max));
}

/// Whether a box has stayed within its reach. False if it has a NaN.
bool isWithin(const Reach& reach, const Aabb& grown, const Aabb& box) {
  const float by = reach.length();
#if defined(GPULBVH_SSE2)
  // Tests the first four and the last four of the six numbers. Insets are added to minima and
  // subtracted from maxima.
  const __m128i zero = _mm_setzero_si128();
  const __m128 unit = _mm_set1_ps(reach.unit), sign = _mm_set1_ps(-0.0f), most = _mm_set1_ps(by);
  const __m128i insets =
      _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(reach.insets)), zero);
  const auto isIn = [&](std::size_t first, __m128i four, __m128 signs) {
    const __m128 inset = _mm_mul_ps(_mm_xor_ps(unit, signs), _mm_cvtepi32_ps(four));
    const __m128 from =
        _mm_add_ps(_mm_loadu_ps(reinterpret_cast<const float*>(&grown) + first), inset);
    const __m128 now = _mm_loadu_ps(reinterpret_cast<const float*>(&box) + first);
    return _mm_cmple_ps(_mm_andnot_ps(sign, _mm_sub_ps(now, from)), most);
  };
  const __m128 first = isIn(0, _mm_unpacklo_epi16(insets, zero), _mm_setr_ps(0, 0, 0, -0.0f));
  const __m128 last = isIn(2, _mm_unpacklo_epi16(_mm_srli_si128(insets, 4), zero),
                           _mm_setr_ps(0, -0.0f, -0.0f, -0.0f));
  return _mm_movemask_ps(_mm_and_ps(first, last)) == 15;
#else
  const Aabb from = reach.from(grown);
  bool isIn = true;
  for (int axis = 0; axis < 3; ++axis)
    isIn = isIn & (std::abs(box.min[axis] - from.min[axis]) <= by) &
           (std::abs(box.max[axis] - from.max[axis]) <= by);
  return isIn;
#endif
}

/// A number below 2^32. The numbers of consecutive i are spread evenly, without a pattern that the
/// numbering of objects could have, too.
std::uint64_t scattered(std::size_t i) {
  return static_cast<std::uint32_t>(i) * 0x9E3779B9u;  // 2^32 / golden ratio
}

/// A factor from 2/3 to 4/3 that depends on the index. So boxes that got their skins in the same
/// step do not all escape in the same step.
float spread(std::size_t i) {
  return 2.0f / 3 + static_cast<float>(scattered(i) >> 8) * (2.0f / 3 / (1 << 24));
}

/// The grown box of `newBox`, longer in the direction of its motion from `oldBox`. Returns `newBox`
/// if it has no extent, or if the grown box would not be ordinary.
Aabb grownFrom(const Aabb& oldBox, const Aabb& newBox, std::size_t i) {
  const Corners old(oldBox), box(newBox);
  const float side = box.sides() / 3;
  if (!(side > 0)) return newBox;
  const Vector motion = 0.5f * ((box.min + box.max) - (old.min + old.max));
  const Vector zero{}, most = zero + kMaxAhead * spread(i) * side, jump = zero + kMaxMotion * side;
  const Mask hasMoved = (motion <= jump) & (motion >= -jump);  // false for a NaN
  Vector ahead, back, forth;
  select<Mask, Vector>(hasMoved, kAhead * spread(i) * motion, zero, ahead);
  select(ahead < most, ahead, most, ahead);
  select<Mask, Vector>(ahead > -most, ahead, -most, ahead);
  select(ahead < zero, ahead, zero, back);
  select(ahead > zero, ahead, zero, forth);
  Corners grown(newBox);
  grown.min = box.min - kSkin * side + back;
  grown.max = box.max + kSkin * side + forth;
  if (!grown.isOrdinary()) return newBox;
  Aabb result;
  std::memcpy(result.min, &grown.min, sizeof result.min);
  std::memcpy(result.max, &grown.max, sizeof result.max);
  return result;
}

/// Whether a box has escaped from its grown box, or is of another class. A box within ordinary
/// bounds is ordinary. If both have a NaN, the box has not escaped: it still overlaps nothing.
bool isOutside(const Aabb& grown, const Aabb& box) {
  const Corners outer(grown), inner(box);
  if (contains(outer, inner) && outer.isOrdinary()) return false;
  const BoxClass boxClass = classify(box);
  if (boxClass != classify(grown)) return true;
  return boxClass != BoxClass::nan && !contains(outer, inner);
}

/// Whether the grown box is so large that a search for all boxes should make it tighter.
bool isLoose(const Aabb& grown, const Aabb& box) {
  return Corners(grown).sides() > kLoose * Corners(box).sides();
}
