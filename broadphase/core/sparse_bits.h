// SPDX-License-Identifier: Zlib
// Defines a set of indices as bits in two levels. The time to clear or to read a set depends
// almost only on the number of indices in the set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
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

/// The number of 64-bit words that hold n bits.
inline std::size_t wordsFor(std::size_t n) { return (n + kMaskBits - 1) / kMaskBits; }

/// A set of indices. The first level has a bit for each index. The second level has a bit for each
/// word of the first: whether the word is not 0.
class SparseBits {
 public:
  /// Ensures that begin(n) and resize(n) do not fail. @throws std::bad_alloc
  void reserve(std::size_t n) {
    words_.reserve(wordsFor(n));
    used_.reserve(wordsFor(wordsFor(n)));
  }
  /// Reserves memory for the indices below n, and removes all other indices from the set.
  /// @throws std::bad_alloc
  void resize(std::size_t n) {
    for (std::size_t word = wordsFor(n); word < words_.size(); ++word) set(word, 0);
    used_.resize(wordsFor(wordsFor(n)));
    words_.resize(wordsFor(n));
    if (n % kMaskBits != 0) set(n / kMaskBits, words_.back() & bitsBelow(n, n - n % kMaskBits));
  }
  void clear() {
    forWords([this](std::size_t word, std::uint64_t) { words_[word] = 0; });
    std::fill(used_.begin(), used_.end(), std::uint64_t{0});
  }
  /// Empties the set, and reserves memory for the indices below n. @throws std::bad_alloc
  void begin(std::size_t n) {
    clear();
    resize(n);
  }

  void add(std::size_t i) { addMask(std::uint64_t{1} << i % kMaskBits, i); }
  /// Adds the indices of the set bits of one word. @param i any index in the word
  void addMask(std::uint64_t bits, std::size_t i) {
    const std::size_t word = i / kMaskBits;
    words_[word] |= bits;
    used_[word / kMaskBits] |= std::uint64_t{bits != 0} << word % kMaskBits;
  }
  void addRange(std::size_t begin, std::size_t end) {
    for (std::size_t first = begin / kMaskBits * kMaskBits; first < end; first += kMaskBits)
      addMask(bitsBelow(end, first) & ~bitsBelow(begin, first), first);
  }
  /// Adds the indices whose bits are set. @param bits at least as many words as the set has
  void addAll(View<const std::uint64_t> bits) {
    for (std::size_t word = 0; word < words_.size(); ++word)
      if (bits[word] != 0) addMask(bits[word], word * kMaskBits);
  }
  /// Adds the indices of `other`, which must have been resized to the same n.
  void addAll(const SparseBits& other) {
    other.forWords(
        [this](std::size_t word, std::uint64_t bits) { addMask(bits, word * kMaskBits); });
  }
  /// Removes the lowest index and returns it. The set must not be empty.
  std::size_t takeLowest() {
    std::size_t group = 0;
    while (used_[group] == 0) ++group;
    const std::size_t word = kMaskBits * group + lowest(used_[group]);
    const std::size_t bit = lowest(words_[word]);
    set(word, words_[word] & (words_[word] - 1));
    return kMaskBits * word + bit;
  }

  bool contains(std::size_t i) const { return hasBit(words(), i); }
  bool isEmpty() const {
    return std::all_of(used_.begin(), used_.end(), [](std::uint64_t words) { return words == 0; });
  }
  std::size_t count() const {
    std::size_t count = 0;
    forWords([&](std::size_t, std::uint64_t bits) {
      count += static_cast<std::size_t>(std::popcount(bits));
    });
    return count;
  }
  /// Calls visit(index) for the indices in ascending order.
  template <class Visit>
  void forEach(const Visit& visit) const {
    forWords([&](std::size_t word, std::uint64_t bits) { forBits(bits, word * kMaskBits, visit); });
  }
  /// Calls visit(word, bits) for the words that are not 0, in ascending order.
  template <class Visit>
  void forWords(const Visit& visit) const {
    for (std::size_t group = 0; group < used_.size(); ++group)
      forBits(used_[group], group * kMaskBits,
              [&](std::uint32_t word) { visit(std::size_t{word}, words_[word]); });
  }

  /// A bit for each index.
  View<const std::uint64_t> words() const { return {words_.data(), words_.size()}; }
  /// A bit for each word of words(): whether it is not 0.
  View<const std::uint64_t> used() const { return {used_.data(), used_.size()}; }
  std::size_t memoryBytes() const {
    return (words_.capacity() + used_.capacity()) * sizeof(std::uint64_t);
  }

 private:
  static std::size_t lowest(std::uint64_t bits) {
    return static_cast<std::size_t>(std::countr_zero(bits));
  }
  void set(std::size_t word, std::uint64_t bits) {
    words_[word] = bits;
    const std::uint64_t mask = std::uint64_t{1} << word % kMaskBits;
    std::uint64_t& used = used_[word / kMaskBits];
    used = bits != 0 ? used | mask : used & ~mask;
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> used_;
};

}  // namespace lbvh
