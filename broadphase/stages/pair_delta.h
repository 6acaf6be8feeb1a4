// Stage 7: which pairs are new and which are gone. Two sorted lists are merged in chunks. Pairs are
// counted first and then written to their places, so the result is sorted and needs no atomics.
#pragma once

#include <cstdint>

#include "broadphase/stages/step_header.h"
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

/// The new list in chunks, each with the part of the old list between the same pairs.
struct PairDelta {
  const Pair* old;
  View<const Pair> room;     ///< where the new pairs are, the first header->pairs of them
  const StepHeader* header;  ///< how many old and new ones; the latter may exceed the room
  View<const std::uint8_t> removedObjects;  ///< by box: not 0 if its old pairs do not count
  std::size_t chunkSize;

  LBVH_HD View<const Pair> oldPairs() const {
    return {old, static_cast<std::size_t>(header->arguments.oldPairs)};
  }

  LBVH_HD View<const Pair> newPairs() const {
    const auto found = static_cast<std::size_t>(header->pairs);
    return {room.data, found < room.size ? found : room.size};
  }

  /// At least one, so that old pairs are compared where there are no new ones.
  LBVH_HD std::size_t chunks(std::size_t pairs) const {
    return pairs == 0 ? 1 : (pairs + chunkSize - 1) / chunkSize;
  }

  /// Where in the old list chunk k of the new list begins.
  LBVH_HD std::size_t oldBegin(std::size_t chunk, View<const Pair> pairs) const {
    if (chunk == 0) return 0;
    if (chunk >= chunks(pairs.size)) return oldPairs().size;
    return lowerBound(oldPairs(), pairs[chunk * chunkSize]);
  }

  /// Calls added(pair) and removed(pair) in order.
  template <class Added, class Removed>
  LBVH_HD void merge(std::size_t chunk, Added added, Removed removed) const {
    const View<const Pair> pairs = newPairs();
    if (chunk >= chunks(pairs.size)) return;
    std::size_t n = chunk * chunkSize, o = oldBegin(chunk, pairs);
    const std::size_t nEnd = n + chunkSize < pairs.size ? n + chunkSize : pairs.size;
    const std::size_t oEnd = oldBegin(chunk + 1, pairs);
    while (n < nEnd || o < oEnd) {
      const bool takeNew = o == oEnd || (n < nEnd && !(old[o] < pairs[n]));
      const bool takeOld = n == nEnd || (o < oEnd && !(pairs[n] < old[o]));
      const bool oldCounts = takeOld && !involvesRemoved(old[o], removedObjects);
      if (takeNew && !oldCounts) added(pairs[n]);
      if (!takeNew && oldCounts) removed(old[o]);
      n += takeNew;
      o += takeOld;
    }
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

/// Chunk 0 also ends the step: it completes the header, and copies it to where the host reads it.
struct WriteDelta {
  static constexpr std::size_t kGrain = 1;  // an element is a whole chunk

  PairDelta delta;
  const DeltaCount* places;  ///< the counts, summed over the chunks before
  const DeltaCount* sums;    ///< over all chunks
  View<Pair> added;          ///< as many as there are, or what is left of the room
  View<Pair> removed;
  StepHeader* header;
  StepHeader* report;

  LBVH_HD void operator()(std::uint32_t chunk) const {
    if (chunk == 0) {
      header->delta = *sums;
      *report = *header;
    }
    DeltaCount place = places[chunk];
    delta.merge(
        chunk, [&](Pair pair) { put(added, place.added++, pair); },
        [&](Pair pair) { put(removed, place.removed++, pair); });
  }

  LBVH_HD static void put(View<Pair> list, std::uint64_t at, Pair pair) {
    if (at < list.size) list[static_cast<std::size_t>(at)] = pair;
  }
};

}  // namespace lbvh
