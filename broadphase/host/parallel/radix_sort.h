// SPDX-License-Identifier: Zlib
// A least-significant-digit radix sort on the host. The sort is stable and parallel, and its result
// does not depend on the number of threads. Needs a spare array as large as the input. Each pass
// first counts the digits in each part of the input. An exclusive scan over (digit, part) then
// computes where each part writes. Finally the elements of each part are moved.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/types.h"

namespace lbvh {

class HostRadixSort {
 public:
  /// Sorts (keys, values) by `bits` bits of the keys from bit `shift` on; the result is in keys and
  /// values.
  template <class Key>
  void byKey(HostTasks& tasks, View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
             View<std::uint32_t> spareValues, int shift, int bits) {
    Key *from = keys.data(), *to = spareKeys.data();
    std::uint32_t *fromValue = values.data(), *toValue = spareValues.data();
    const std::size_t n = keys.size();
    const Digits digits(n, shift, bits);
    for (int pass = 0; pass < digits.passes; ++pass) {
      const auto digit = [from, get = digits.of(pass)](std::size_t i) { return get(from[i]); };
      const auto move = [=](std::size_t i, std::size_t place) {
        to[place] = from[i];
        toValue[place] = fromValue[i];
      };
      if (!scatter(tasks, n, digits.values(), digit, move)) continue;
      std::swap(from, to);
      std::swap(fromValue, toValue);
    }
    if (from == keys.data()) return;
    tasks.forRanges(n, kGrain, [&](std::size_t begin, std::size_t end) {
      std::copy(from + begin, from + end, keys.data() + begin);
      std::copy(fromValue + begin, fromValue + end, values.data() + begin);
    });
  }

  /// Writes the indices of the keys, sorted by `bits` bits of the keys from bit `shift` on. Key and
  /// index are moved together in one word, which takes half as long as byKey(). Both spare arrays
  /// must be as long as the keys.
  /// @return the sorted words, in one of the spare arrays: the key in the high half, the index in
  ///   the low half
  const std::uint64_t* order(HostTasks& tasks, View<const std::uint32_t> keys, std::uint32_t* out,
                             std::uint64_t* spare, std::uint64_t* otherSpare, int shift, int bits) {
    std::uint64_t* from = spare;
    tasks.forRanges(keys.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) from[i] = std::uint64_t{keys[i]} << 32 | i;
    });
    from = scatterWords(tasks, {from, keys.size()}, otherSpare, 32 + shift, bits);
    tasks.forRanges(keys.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) out[i] = static_cast<std::uint32_t>(from[i]);
    });
    return from;
  }

  /// Sorts words by `bits` bits from bit `shift` on. Small inputs use insertion sort.
  /// @return the sorted words: words.data(), or memory that the next call overwrites
  const std::uint64_t* words(HostTasks& tasks, View<std::uint64_t> words, int shift, int bits) {
    if (words.size() > kMaxInserted)
      return scatterWords(tasks, words, spareWords_.ensure(words.size()).data(), shift, bits);
    const std::uint64_t mask = bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0};
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t word = words[i], key = word >> shift & mask;
      std::size_t at = i;
      for (; at > 0 && (words[at - 1] >> shift & mask) > key; --at) words[at] = words[at - 1];
      words[at] = word;
    }
    return words.data();
  }

  std::size_t memoryBytes() const { return spareWords_.bytes(); }

 private:
  static constexpr int kMaxBits = 11;   // 2048 counters: 16 KiB, half of a first-level cache
  static constexpr int kShortBits = 8;  // for few keys, for which 2048 counters would cost more
  static constexpr std::size_t kManyKeys = 2048;
  static constexpr std::size_t kMaxInserted = 32;  // for 64 words, a counting sort is as fast
  static constexpr std::size_t kGrain = 8192;

  /// @return the array that has the result, words.data() or spare
  std::uint64_t* scatterWords(HostTasks& tasks, View<std::uint64_t> words, std::uint64_t* spare,
                              int shift, int bits) {
    std::uint64_t *from = words.data(), *to = spare;
    const Digits digits(words.size(), shift, bits);
    for (int pass = 0; pass < digits.passes; ++pass) {
      const auto digit = [from, get = digits.of(pass)](std::size_t i) { return get(from[i]); };
      const auto move = [=](std::size_t i, std::size_t place) { to[place] = from[i]; };
      if (scatter(tasks, words.size(), digits.values(), digit, move)) std::swap(from, to);
    }
    return from;
  }

  struct Digit {
    int shift;
    std::uint64_t mask;
    std::size_t operator()(std::uint64_t key) const {
      return static_cast<std::size_t>(key >> shift & mask);
    }
  };

  /// The digits of `bits` bits from bit `shift` on, spread evenly over the passes.
  struct Digits {
    Digits(std::size_t keys, int first, int all) : shift(first), bits(all) {
      const int most = keys < kManyKeys ? kShortBits : kMaxBits;
      passes = (bits + most - 1) / most;
      width = passes > 0 ? (bits + passes - 1) / passes : 0;
    }
    std::size_t values() const { return std::size_t{1} << width; }
    Digit of(int pass) const {
      const int size = std::min(width, bits - pass * width);
      return {shift + pass * width, (std::uint64_t{1} << size) - 1};
    }

    int shift, bits, passes, width;
  };

  /// One stable pass. Moves nothing and returns false if all digits are equal.
  template <class Digit, class Move>
  bool scatter(HostTasks& tasks, std::size_t n, std::size_t values, const Digit& digit,
               const Move& move) {
    const std::size_t parts = tasks.parts(n, kGrain);
    if (counts_.size() < parts) counts_.resize(parts);
    tasks.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      Counts& counts = counts_[part];
      std::fill_n(counts.begin(), values, std::size_t{0});
      for (std::size_t i = begin; i < end; ++i) ++counts[digit(i)];
    });
    if (!scan(parts, n, values)) return false;
    tasks.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      Counts& place = counts_[part];
      for (std::size_t i = begin; i < end; ++i) move(i, place[digit(i)]++);
    });
    return true;
  }

  /// Turns each count into the index at which its elements begin in the result, by digit and then
  /// by part. Returns false if all n elements have the same digit.
  bool scan(std::size_t parts, std::size_t n, std::size_t values) {
    std::size_t sum = 0;
    for (std::size_t d = 0; d < values; ++d) {
      const std::size_t before = sum;
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t count = counts_[part][d];
        counts_[part][d] = sum;
        sum += count;
      }
      if (sum - before == n) return false;
    }
    return true;
  }

  using Counts = std::array<std::size_t, std::size_t{1} << kMaxBits>;
  std::vector<Counts> counts_;
  HostBuffer<std::uint64_t> spareWords_;
};

}  // namespace lbvh
