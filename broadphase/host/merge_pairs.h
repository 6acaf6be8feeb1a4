// Stage 6 on the host when most boxes rest: merges the old pairs that stay with the pairs of the
// boxes that move, over the threads. Both lists are sorted, and no pair is in both.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/types.h"

namespace lbvh {

/// Pairs as numbers that sort in the same order. An index takes `indexBits` bits.
struct PairWords {
  int indexBits;

  std::uint64_t of(Pair pair) const { return std::uint64_t{pair.first} << indexBits | pair.second; }
  Pair pair(std::uint64_t word) const {
    return {static_cast<std::uint32_t>(word >> indexBits),
            static_cast<std::uint32_t>(word & ((std::uint64_t{1} << indexBits) - 1))};
  }
};

class PairMerge {
 public:
  /// @param stays stays(pair): whether an old pair stays
  /// @param out has room for all old pairs and words
  /// @return the merged pairs, in `out`
  template <class Stays>
  View<Pair> merge(HostTasks& tasks, View<const Pair> old, const Stays& stays,
                   View<const std::uint64_t> words, PairWords format, Pair* out) {
    const View<Part> parts = parts_.ensure(tasks.parts(old.size, kGrain));
    tasks.forParts(old.size, parts.size, [&](std::size_t k, std::size_t begin, std::size_t end) {
      const auto wordsBefore = [&](std::size_t i) {
        return std::lower_bound(words.begin(), words.end(), format.of(old[i]));
      };
      const auto* word = begin == 0 ? words.begin() : wordsBefore(begin);
      const auto* const wordEnd = end == old.size ? words.end() : wordsBefore(end);
      Pair* const first = out + begin + (word - words.begin());
      Pair* to = first;
      for (std::size_t i = begin; i < end; ++i) {
        for (const auto next = format.of(old[i]); word != wordEnd && *word < next; ++word)
          *to++ = format.pair(*word);
        *to = old[i];  // the next pair overwrites it if it does not stay
        to += stays(old[i]);
      }
      to = std::transform(word, wordEnd, to, [&](std::uint64_t w) { return format.pair(w); });
      parts[k] = {first, static_cast<std::size_t>(to - first)};
    });
    View<Pair> merged{out, 0};
    for (const Part& part : parts) {
      if (merged.end() != part.first) std::copy_n(part.first, part.size, merged.end());
      merged.size += part.size;
    }
    return merged;
  }

  std::size_t memoryBytes() const { return parts_.bytes(); }

 private:
  static constexpr std::size_t kGrain = 8192;

  struct Part {
    Pair* first;
    std::size_t size;
  };
  HostBuffer<Part> parts_;
};

}  // namespace lbvh
