// SPDX-License-Identifier: Zlib
// Finds the elements of an array that have changed since the previous step, as masks of 64 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "broadphase/core/sparse_bits.h"

namespace lbvh {

/// Whether any bit of two objects differs.
template <class T>
bool differ(const T& a, const T& b) {
  if constexpr (sizeof(T) % 8 != 0) {
    return std::memcmp(&a, &b, sizeof(T)) != 0;
  } else {
    std::uint64_t x[sizeof(T) / 8], y[sizeof(T) / 8], bits = 0;
    std::memcpy(x, &a, sizeof x);
    std::memcpy(y, &b, sizeof y);
    for (std::size_t i = 0; i < sizeof(T) / 8; ++i) bits |= x[i] ^ y[i];
    return bits != 0;
  }
}

/// A mask of the elements that differ. `count` is at most 64.
template <class T>
std::uint64_t findChanged(const T* old, const T* now, std::size_t count) {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) changed |= std::uint64_t{differ(old[i], now[i])} << i;
  return changed;
}

/// Copies the elements of the mask `changed` from `now` to `old`.
template <class T>
void copyChanged(T* old, const T* now, std::size_t count, std::uint64_t changed) {
  if (std::popcount(changed) == static_cast<int>(count))
    std::copy_n(now, count, old);
  else
    forBits(changed, 0, [&](std::uint32_t i) { old[i] = now[i]; });
}

}  // namespace lbvh
