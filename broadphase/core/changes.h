// SPDX-License-Identifier: Zlib
// Finds the elements of an array that differ from the last step, as masks of 64 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "broadphase/types.h"

namespace lbvh {

inline constexpr std::size_t kMaskBits = 64;

/// A mask of 64 bits: bit k is set if first + k is less than n.
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

/// A set of indices of an array.
class ChangedSet {
 public:
  /// Empties the set. All indices must be less than n. @throws std::bad_alloc
  void begin(std::size_t n) { words_.assign((n + kMaskBits - 1) / kMaskBits, 0); }

  /// @param first a multiple of 64
  void add(std::uint64_t mask, std::size_t first) { words_[first / kMaskBits] |= mask; }
  void add(std::size_t i) { words_[i / kMaskBits] |= std::uint64_t{1} << i % kMaskBits; }
  /// @param begin a multiple of 64
  void addRange(std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kMaskBits) add(bitsBelow(end, begin), begin);
  }

  std::size_t count() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  /// Calls visit(index) for the indices in ascending order.
  template <class Visit>
  void forEach(const Visit& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) forBits(words_[w], w * kMaskBits, visit);
  }

 private:
  std::vector<std::uint64_t> words_;
};

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
