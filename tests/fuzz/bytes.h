// SPDX-License-Identifier: Zlib
// A fuzzer's bytes as a source of choices. Has the members of lbvh::test::Random, so that code for
// one can use the other. After the last byte, every choice is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "support.h"

namespace fuzz {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool atEnd() const { return at_ == end_; }
  std::uint8_t byte() { return atEnd() ? std::uint8_t{0} : *at_++; }
  std::uint32_t bits() {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | byte();
    return bits;
  }
  /// Takes one byte for a small n, so that a mutation of one byte changes one choice.
  std::uint32_t below(std::uint32_t n) { return (n <= 256 ? byte() : bits()) % n; }
  bool oneIn(std::uint32_t n) { return below(n) == n - 1; }
  /// One of 256 values, so that equal values are frequent.
  float uniform(float lo = 0, float hi = 1) {
    return lo + (hi - lo) * static_cast<float>(byte()) / 256.0f;
  }

  /// A coordinate, mostly on a coarse grid. Otherwise it is an edge case of floats, or any float.
  float coordinate() {
    constexpr auto kInf = std::numeric_limits<float>::infinity();
    constexpr auto kMax = std::numeric_limits<float>::max();
    constexpr auto kTiny = std::numeric_limits<float>::denorm_min();
    constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kOdd[] = {-0.0f, kTiny,  -kTiny, 0x1p-126f, 1 + 0x1p-23f, 1 - 0x1p-24f,
                              0.1f,  1e-20f, 3e9f,   -3e9f,     16777216,     1e12f,
                              1e17f, 1e18f,  -1e18f, 1e30f,     -1e30f,       kMax,
                              -kMax, kInf,   -kInf,  kNan};
    constexpr std::uint8_t kOddCount = sizeof kOdd / sizeof *kOdd;
    const std::uint8_t kind = byte();
    if (kind < 224) return static_cast<float>(kind % 32) * 0.5f;
    if (kind < 224 + kOddCount) return kOdd[kind - 224];
    const std::uint32_t raw = bits();
    float any = 0;
    std::memcpy(&any, &raw, sizeof any);
    return any;
  }

  /// Reads a box. In most cases it is a cube on a grid, made from three bytes. Otherwise it has any
  /// coordinates.
  lbvh::Aabb box() {
    const std::uint8_t kind = byte();
    lbvh::Aabb box{};
    if (kind < 208) {
      const std::uint32_t place = std::uint32_t{byte()} << 8 | byte();
      for (int axis = 0; axis < 3; ++axis) {
        box.min[axis] = static_cast<float>(place >> 5 * axis & 31u) * 0.5f;
        box.max[axis] = box.min[axis] + static_cast<float>(kind % 8) * 0.5f;
      }
      return box;
    }
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = coordinate();
      box.max[axis] = kind < 224 ? -box.min[axis] : coordinate();
    }
    return box;
  }

 private:
  const std::uint8_t *at_, *end_;
};

/// Random bytes, which are the same for the same seed.
inline std::vector<std::uint8_t> randomBytes(std::uint32_t seed, std::size_t count) {
  lbvh::test::Random random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.bits() >> 24);
  return bytes;
}

}  // namespace fuzz
