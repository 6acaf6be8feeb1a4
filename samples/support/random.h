// SPDX-License-Identifier: Zlib
// Random numbers that are the same with every standard library: raw std::mt19937 outputs.
// No distributions; those differ between libraries.
#pragma once

#include <LinearMath/btVector3.h>

#include <cstdint>
#include <random>

class Random {
 public:
  /// @param start the seed. A header of Bullet has a global that is named seed.
  explicit Random(std::uint32_t start) : generator_(start) {}

  /// In [0, 1), with 24 bits, so it is exact in a float.
  btScalar unit() { return btScalar(generator_() >> 8) * btScalar(1.0 / 16777216.0); }

  btScalar between(btScalar low, btScalar high) { return low + (high - low) * unit(); }

  /// In [0, n); the bias is below n / 2^32.
  int below(int n) {
    return static_cast<int>(std::uint64_t{generator_()} * static_cast<std::uint64_t>(n) >> 32);
  }

  /// In the cube [-1, 1)^3. One statement each: the order of arguments is not defined.
  btVector3 inCube() {
    const btScalar x = between(-1, 1);
    const btScalar y = between(-1, 1);
    const btScalar z = between(-1, 1);
    return {x, y, z};
  }

 private:
  std::mt19937 generator_;
};
