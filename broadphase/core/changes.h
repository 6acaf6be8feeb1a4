// SPDX-License-Identifier: Zlib
// Which elements of an array differ from those of the last step, as masks of 64.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::size_t kMaskBits = 64;

/// A mask of the indices from `first` on, 64 at most, that are less than n.
inline std::uint64_t bitsBelow(std::size_t n, std::size_t first) {
  if (n <= first) return 0;
  return n - first >= kMaskBits ? ~std::uint64_t{0} : (std::uint64_t{1} << (n - first)) - 1;
}

inline bool hasBit(View<const std::uint64_t> bits, std::size_t i) {
  return (bits[i / kMaskBits] >> i % kMaskBits & 1) != 0;
}

template <class Visit>
void forBits(std::uint64_t bits, std::size_t first, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1)
    visit(static_cast<std::uint32_t>(first + static_cast<std::size_t>(std::countr_zero(bits))));
}

/// Bit for bit.
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

/// Which of up to 64 elements differ from the old ones.
template <class T>
std::uint64_t findChanged(const T* old, const T* now, std::size_t count) {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) changed |= std::uint64_t{differ(old[i], now[i])} << i;
  return changed;
}

/// Brings those of a mask up to date.
template <class T>
void copyChanged(T* old, const T* now, std::size_t count, std::uint64_t changed) {
  if (std::popcount(changed) == static_cast<int>(count))
    std::copy_n(now, count, old);
  else
    forBits(changed, 0, [&](std::uint32_t i) { old[i] = now[i]; });
}

}  // namespace lbvh
