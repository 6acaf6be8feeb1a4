// SPDX-License-Identifier: Zlib
// Random numbers that are equal with every standard library. They use raw std::mt19937 outputs,
// because distributions differ between libraries.
#pragma once

#include <LinearMath/btVector3.h>

#include <cstdint>
#include <random>

class Random {
 public:
  /// @param start the seed; the name `seed` would hide a global variable of a Bullet header
  explicit Random(std::uint32_t start) : generator_(start) {}

  /// A number in [0, 1) with 24 bits, so it is exact in a float.
  btScalar unit() { return btScalar(generator_() >> 8) * btScalar(1.0 / 16777216.0); }

  btScalar between(btScalar low, btScalar high) { return low + (high - low) * unit(); }

  /// A number in [0, n); the bias is below n / 2^32.
  int below(int n) {
    return static_cast<int>(std::uint64_t{generator_()} * static_cast<std::uint64_t>(n) >> 32);
  }

  /// A point in the cube [-1, 1)^3. Each coordinate has its own statement, because the order in
  /// which arguments are evaluated is not defined.
  btVector3 inCube() {
    const btScalar x = between(-1, 1);
    const btScalar y = between(-1, 1);
    const btScalar z = between(-1, 1);
    return {x, y, z};
  }

 private:
  std::mt19937 generator_;
};
