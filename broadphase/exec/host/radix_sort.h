// Least-significant-digit radix sort on the host: stable, parallel, the same result for every
// thread count. Needs a spare array of the same size, and allocates only its counters. Each part of
// the input counts its digits. An exclusive scan over (digit, part) gives each part its places.
// Then each part moves its elements there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "broadphase/exec/host/tasks.h"
#include "broadphase/types.h"

namespace lbvh {

class HostRadixSort {
 public:
  /// Sorts (keys, values) by `bits` bits of the keys from bit `shift` on; the result is in keys and
  /// values.
  template <class Key>
  void byKey(HostTasks& tasks, View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
             View<std::uint32_t> spareValues, int shift, int bits) {
    Key *from = keys.data, *to = spareKeys.data;
    std::uint32_t *fromValue = values.data, *toValue = spareValues.data;
    const std::size_t n = keys.size;
    const int passes = passesFor(bits);
    for (int pass = 0; pass < passes; ++pass) {
      const auto digit = [from, get = Digit(pass, bits, shift)](std::size_t i) {
        return get(from[i]);
      };
      const auto move = [=](std::size_t i, std::size_t place) {
        to[place] = from[i];
        toValue[place] = fromValue[i];
      };
      if (!scatter(tasks, n, digit, move)) continue;
      std::swap(from, to);
      std::swap(fromValue, toValue);
    }
    if (from == keys.data) return;
    tasks.forRanges(n, kGrain, [&](std::size_t begin, std::size_t end) {
      std::copy(from + begin, from + end, keys.data + begin);
      std::copy(fromValue + begin, fromValue + end, values.data + begin);
    });
  }

  /// Writes the indices of the keys, sorted by the low `bits` bits of the keys. Key and index move
  /// together in one word, which takes half of byKey's time. Both spare arrays are as long as the
  /// keys.
  void order(HostTasks& tasks, View<const std::uint32_t> keys, std::uint32_t* out,
             std::uint64_t* spare, std::uint64_t* otherSpare, int bits) {
    std::uint64_t* from = spare;
    tasks.forRanges(keys.size, kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) from[i] = std::uint64_t{keys[i]} << 32 | i;
    });
    from = words(tasks, {from, keys.size}, otherSpare, 32, bits);
    tasks.forRanges(keys.size, kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) out[i] = static_cast<std::uint32_t>(from[i]);
    });
  }

  /// Sorts words by `bits` bits from bit `shift` on.
  /// @return which of the two arrays has the result
  std::uint64_t* words(HostTasks& tasks, View<std::uint64_t> words, std::uint64_t* spare, int shift,
                       int bits) {
    std::uint64_t *from = words.data, *to = spare;
    for (int pass = 0; pass < passesFor(bits); ++pass) {
      const auto digit = [from, get = Digit(pass, bits, shift)](std::size_t i) {
        return get(from[i]);
      };
      const auto move = [=](std::size_t i, std::size_t place) { to[place] = from[i]; };
      if (scatter(tasks, words.size, digit, move)) std::swap(from, to);
    }
    return from;
  }

 private:
  static constexpr int kDigitBits = 11;  // 2048 counters: 16 KiB, half of a first-level cache
  static constexpr std::size_t kGrain = 8192;

  static int passesFor(int bits) { return (bits + kDigitBits - 1) / kDigitBits; }

  /// The digit of one pass, when `bits` bits from bit `from` on are spread evenly over the passes.
  class Digit {
   public:
    Digit(int pass, int bits, int from) {
      const int width = (bits + passesFor(bits) - 1) / passesFor(bits);
      shift_ = from + pass * width;
      mask_ = (std::uint64_t{1} << std::min(width, bits - pass * width)) - 1;
    }
    std::size_t operator()(std::uint64_t key) const { return key >> shift_ & mask_; }

   private:
    int shift_;
    std::uint64_t mask_;
  };

  /// One stable pass. False, with nothing moved, if all digits are equal.
  template <class Digit, class Move>
  bool scatter(HostTasks& tasks, std::size_t n, const Digit& digit, const Move& move) {
    const std::size_t parts = tasks.parts(n, kGrain);
    if (counts_.size() < parts) counts_.resize(parts);
    tasks.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      Counts& counts = counts_[part];
      counts.fill(0);
      for (std::size_t i = begin; i < end; ++i) ++counts[digit(i)];
    });
    if (!scan(parts, n)) return false;
    tasks.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      Counts& place = counts_[part];
      for (std::size_t i = begin; i < end; ++i) move(i, place[digit(i)]++);
    });
    return true;
  }

  /// Turns counts into places: by digit, then by part. False if one digit has all n.
  bool scan(std::size_t parts, std::size_t n) {
    std::size_t sum = 0;
    for (std::size_t d = 0; d < (std::size_t{1} << kDigitBits); ++d) {
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

  using Counts = std::array<std::size_t, std::size_t{1} << kDigitBits>;
  std::vector<Counts> counts_;
};

}  // namespace lbvh
