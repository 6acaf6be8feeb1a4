// SPDX-License-Identifier: Zlib
// How a box grows (skin.h): how large its skin is, and when it has left it. Included by skin.cpp.

// Found by simulation over piles, debris and a city, then measured.
constexpr float kSkin = 1.0f / 16;   // of a box's mean side
constexpr float kAhead = 1.8f;       // of how far it has moved from the middle of its grown box
constexpr float kMostAhead = 1.5f;   // of its mean side
constexpr float kMostMotion = 2.0f;  // of its mean side: beyond, it has jumped
constexpr float kLoose = 2.0f;       // a box that has shrunk to less of its grown box leaves it

#include "broadphase/host/simd/lanes.inl"

using Vector = Lanes<float, 4>;
using Mask = Lanes<std::int32_t, 4>;

/// Whether the first three are true.
bool all(Mask mask) {
  mask |= Mask{0, 0, 0, -1};
  std::uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof halves);
  return (halves[0] & halves[1]) == ~std::uint64_t{0};
}

/// Of each vector the first three numbers count.
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

/// Axis by axis, which holds for inverted boxes, too: what overlaps the inner one then overlaps the
/// outer one.
bool contains(const Corners& outer, const Corners& inner) {
  return all((outer.min <= inner.min) & (inner.max <= outer.max));
}

/// Numbers below 2^32, spread evenly, and in no step with how objects are numbered.
std::uint64_t scattered(std::size_t i) {
  return static_cast<std::uint32_t>(i) * 0x9E3779B9u;  // 2^32 over the golden ratio
}

/// From 2/3 to 4/3, by index: so boxes that got their skins together do not leave them together.
float spread(std::size_t i) {
  return 2.0f / 3 + static_cast<float>(scattered(i) >> 8) * (2.0f / 3 / (1 << 24));
}

/// Boxes that are not ordinary, or would not be, stay as they are.
Aabb grownFrom(const Aabb& oldBox, const Aabb& newBox, std::size_t i) {
  const Corners old(oldBox), box(newBox);
  const float side = box.sides() / 3;
  if (!(side > 0)) return newBox;
  const Vector motion = 0.5f * ((box.min + box.max) - (old.min + old.max));
  const Vector zero{}, most = zero + kMostAhead * spread(i) * side,
                       jump = zero + kMostMotion * side;
  const Mask hasMoved = (motion <= jump) & (motion >= -jump);  // not if it is NaN
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

/// Or is of another class now. What lies within ordinary bounds is ordinary. A box with a NaN
/// overlaps nothing, so it need not leave its like.
bool isOutside(const Aabb& grown, const Aabb& box) {
  const Corners outer(grown), inner(box);
  if (contains(outer, inner) && outer.isOrdinary()) return false;
  const BoxClass boxClass = classify(box);
  if (boxClass != classify(grown)) return true;
  return boxClass != BoxClass::nan && !contains(outer, inner);
}

/// A search for all may make the grown boxes tighter.
bool isLoose(const Aabb& grown, const Aabb& box) {
  return Corners(grown).sides() > kLoose * Corners(box).sides();
}
