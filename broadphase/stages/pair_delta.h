// Stage 7: which pairs are new and which are gone, by merging two sorted lists in chunks.
// Counted first, then written to their places, so the result is sorted and needs no atomics.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// First index in the sorted `pairs` whose pair is not before `pair`.
LBVH_HD inline std::size_t lowerBound(View<const Pair> pairs, Pair pair) {
  std::size_t begin = 0, size = pairs.size;
  while (size > 0) {
    const std::size_t half = size / 2;
    const bool before = pairs[begin + half] < pair;
    begin = before ? begin + half + 1 : begin;
    size = before ? size - half - 1 : half;
  }
  return begin;
}

/// One chunk of the new list, with the stretch of the old list that lies at the same pairs.
struct PairDelta {
  View<const Pair> oldPairs;
  View<const Pair> newPairs;
  View<const std::uint8_t> forgotten;  ///< by box: not 0 if its old pairs do not count
  std::size_t chunkSize;

  LBVH_HD std::size_t chunks() const {
    return newPairs.empty() ? 1 : (newPairs.size + chunkSize - 1) / chunkSize;
  }

  LBVH_HD std::size_t oldBegin(std::size_t chunk) const {
    if (chunk == 0) return 0;
    return chunk == chunks() ? oldPairs.size : lowerBound(oldPairs, newPairs[chunk * chunkSize]);
  }

  LBVH_HD bool counts(Pair old) const {
    const bool gone = (old.first < forgotten.size && forgotten[old.first] != 0) ||
                      (old.second < forgotten.size && forgotten[old.second] != 0);
    return !gone;
  }

  /// Calls added(pair) and removed(pair) in order.
  template <class Added, class Removed>
  LBVH_HD void merge(std::size_t chunk, Added added, Removed removed) const {
    std::size_t n = chunk * chunkSize, o = oldBegin(chunk);
    const std::size_t nEnd = chunk + 1 == chunks() ? newPairs.size : n + chunkSize;
    const std::size_t oEnd = oldBegin(chunk + 1);
    while (n < nEnd || o < oEnd) {
      const bool takeNew = o == oEnd || (n < nEnd && !(oldPairs[o] < newPairs[n]));
      const bool takeOld = n == nEnd || (o < oEnd && !(newPairs[n] < oldPairs[o]));
      const bool oldCounts = takeOld && counts(oldPairs[o]);
      if (takeNew && !oldCounts) added(newPairs[n]);
      if (!takeNew && oldCounts) removed(oldPairs[o]);
      n += takeNew;
      o += takeOld;
    }
  }
};

struct DeltaCount {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;

  LBVH_HD DeltaCount& operator+=(const DeltaCount& other) {
    added += other.added;
    removed += other.removed;
    return *this;
  }
};

struct CountDelta {
  static constexpr std::size_t kGrain = 1;  // an element is a whole chunk

  PairDelta delta;
  DeltaCount* counts;  ///< a chunk each

  LBVH_HD void operator()(std::uint32_t chunk) const {
    DeltaCount count;
    delta.merge(
        chunk, [&](Pair) { ++count.added; }, [&](Pair) { ++count.removed; });
    counts[chunk] = count;
  }
};

struct WriteDelta {
  static constexpr std::size_t kGrain = 1;  // an element is a whole chunk

  PairDelta delta;
  const DeltaCount* places;  ///< the counts, summed over the chunks before
  Pair* added;
  Pair* removed;

  LBVH_HD void operator()(std::uint32_t chunk) const {
    DeltaCount place = places[chunk];
    delta.merge(
        chunk, [&](Pair pair) { added[place.added++] = pair; },
        [&](Pair pair) { removed[place.removed++] = pair; });
  }
};

}  // namespace lbvh
