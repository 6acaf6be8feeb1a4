// SPDX-License-Identifier: Zlib
#include "broadphase/host/pair_lists.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "broadphase/core/pair_words.h"

namespace lbvh {
namespace {

constexpr std::size_t kListGrain = 1024;  // lists per chunk
constexpr std::size_t kSumGrain = 8;      // chunks
constexpr PairWords kKeys{32};

std::size_t lowerBound(View<const Pair> pairs, Pair pair) {
  return static_cast<std::size_t>(std::lower_bound(pairs.begin(), pairs.end(), pair) -
                                  pairs.begin());
}

/// In a sorted list, the first index >= `from` whose pair is not less than `pair`. The time is
/// logarithmic in the distance from `from`.
std::size_t lowerBoundNear(View<const Pair> pairs, std::size_t from, Pair pair) {
  std::size_t step = 1;
  for (; from + step < pairs.size() && pairs[from + step] < pair; step *= 2) from += step;
  const std::size_t end = std::min(from + step, pairs.size());
  return from + lowerBound({pairs.data() + from, end - from}, pair);
}

/// Writes a number for each added or removed pair, in ascending order. The number is twice the
/// index of the first element of `pairs` that is not less than that pair, plus 1 for an added pair.
void findPlaces(View<const Pair> pairs, View<const Pair> added, View<const Pair> removed,
                View<std::uint64_t> places) {
  const Pair *add = added.begin(), *remove = removed.begin();
  std::size_t at = 0;
  for (std::uint64_t& place : places) {
    const bool adds = remove == removed.end() || (add != added.end() && *add < *remove);
    at = lowerBoundNear(pairs, at, adds ? *add++ : *remove++);
    place = std::uint64_t{at} << 1 | std::uint64_t{adds};
  }
}

/// Appends `count` pairs to a list. They are at its end already, or later in the same memory.
void close(View<Pair>& list, const Pair* from, std::size_t count) {
  if (list.end() != from) std::copy(from, from + count, list.end());
  list = {list.data(), list.size() + count};
}

}  // namespace

void NeighbourSort::writePairs(NeighbourLists lists, std::size_t boxes, View<Pair> out) {
  forChunks(lists, boxes, [&](const Chunk& chunk) {
    kernels_.sortLists(lists, chunk.first, chunk.end, indexSet(chunk.worker),
                       {out.data() + chunk.start, chunk.size});
  });
}

void NeighbourSort::writeLists(NeighbourLists lists, std::size_t boxes, View<std::uint32_t> out,
                               std::uint32_t* offsets) {
  offsets[0] = 0;
  std::vector<HostBuffer<Pair>> pairs(static_cast<std::size_t>(tasks_.threads()));
  forChunks(lists, boxes, [&](const Chunk& chunk) {
    const View<Pair> sorted = pairs[chunk.worker].ensure(chunk.size);
    kernels_.sortLists(lists, chunk.first, chunk.end, indexSet(chunk.worker), sorted);
    for (std::size_t k = 0; k < sorted.size(); ++k) out[chunk.start + k] = sorted[k].second;
    auto end = static_cast<std::uint32_t>(chunk.start);
    for (std::uint32_t i = chunk.first; i < chunk.end; ++i)
      offsets[i + 1] = end += lists.byBox[i].size;
  });
}

/// Calls sort(chunk) for all chunks of lists, in parallel.
template <class Sort>
void NeighbourSort::forChunks(const NeighbourLists& lists, std::size_t boxes, const Sort& sort) {
  const std::size_t chunks = (boxes + kListGrain - 1) / kListGrain;
  const View<std::uint64_t> starts = chunkStarts_.ensure(chunks + 1);
  const auto firstOf = [](std::size_t chunk) {
    return static_cast<std::uint32_t>(chunk * kListGrain);
  };
  const auto endOf = [&](std::size_t chunk) {
    return static_cast<std::uint32_t>(std::min(boxes, (chunk + 1) * kListGrain));
  };
  tasks_.forRanges(chunks, kSumGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      starts[chunk] = 0;
      for (std::uint32_t i = firstOf(chunk); i < endOf(chunk); ++i)
        starts[chunk] += lists.byBox[i].size;
    }
  });
  starts[chunks] = 0;  // becomes the end of the last chunk
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::uint64_t{0});
  growIndexSets(boxes);
  tasks_.forWorkers(chunks, 1, [&](std::size_t worker, std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk)
      sort({worker, firstOf(chunk), endOf(chunk), static_cast<std::size_t>(starts[chunk]),
            static_cast<std::size_t>(starts[chunk + 1] - starts[chunk])});
    return true;
  });
}

void NeighbourSort::growIndexSets(std::size_t boxes) {
  const std::size_t words = boxes / (64 * 64) + 1;
  if (65 * words <= indexSetSize_) return;
  indexSetSize_ = 0;
  const auto all = indexSets_.ensure(65 * words * static_cast<std::size_t>(tasks_.threads()));
  std::fill(all.begin(), all.end(), std::uint64_t{0});
  indexSetSize_ = 65 * words;
}

IndexSet NeighbourSort::indexSet(std::size_t worker) const {
  const std::size_t words = indexSetSize_ / 65;
  std::uint64_t* memory = indexSets_.data() + worker * indexSetSize_;
  return {memory + words, memory, words};
}

HostPairDelta::Lists HostPairDelta::compare(HostTasks& tasks, View<const Pair> oldPairs,
                                            View<const Pair> newPairs,
                                            View<const std::uint8_t> removedObjects, Pair* added,
                                            Pair* removed) {
  Lists lists{{added, 0}, {removed, 0}};
  const std::size_t count =
      std::max<std::size_t>(1, (newPairs.size() + chunkSize_ - 1) / chunkSize_);
  const View<Chunk> chunks = chunks_.ensure(count);
  // This loop reads old pairs before any of them is overwritten.
  for (std::size_t k = 0; k < count; ++k) {
    Chunk& chunk = chunks[k];
    chunk.newBegin = k * chunkSize_;
    chunk.newEnd = std::min(newPairs.size(), (k + 1) * chunkSize_);
    chunk.oldBegin = k == 0 ? 0 : lowerBound(oldPairs, newPairs[chunk.newBegin]);
    chunk.oldEnd = oldPairs.size();
    if (k > 0) chunks[k - 1].oldEnd = chunk.oldBegin;
  }
  tasks.forRanges(count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
      merge(chunks[k], oldPairs.data(), newPairs.data(), removedObjects, lists);
  });
  for (const Chunk& chunk : chunks) {
    close(lists.added, added + chunk.newBegin, chunk.added);
    close(lists.removed, removed + chunk.oldBegin, chunk.removed);
  }
  return lists;
}

void HostPairDelta::merge(Chunk& chunk, const Pair* oldPairs, const Pair* newPairs,
                          View<const std::uint8_t> removedObjects, const Lists& out) const {
  Pair* const added = out.added.data() + chunk.newBegin;
  Pair* const removed = out.removed.data() + chunk.oldBegin;
  DeltaMerge state{newPairs + chunk.newBegin,
                   newPairs + chunk.newEnd,
                   oldPairs + chunk.oldBegin,
                   oldPairs + chunk.oldEnd,
                   added,
                   removed};
  if (removedObjects.empty()) kernels_.mergeDelta(state);
  auto [n, nEnd, o, oEnd, add, remove] = state;
  const auto counts = [&](Pair pair) {
    return removedObjects.empty() || !involvesRemoved(pair, removedObjects);
  };
  while (n != nEnd && o != oEnd) {
    const std::uint64_t newKey = kKeys.of(*n), oldKey = kKeys.of(*o);
    if (newKey == oldKey) {  // in most cases
      if (!counts(*o)) *add++ = *n;
      ++n;
      ++o;
    } else if (newKey < oldKey) {
      *add++ = *n++;
    } else {
      if (counts(*o)) *remove++ = *o;
      ++o;
    }
  }
  add = std::copy(n, nEnd, add);
  remove = std::copy_if(o, oEnd, remove, counts);
  chunk.added = static_cast<std::size_t>(add - added);
  chunk.removed = static_cast<std::size_t>(remove - removed);
}

void mergeChanges(const SimdKernels& kernels, View<const Pair> old, View<const Pair> added,
                  View<const Pair> removed, View<Pair> out) {
  PairPatch patch{old.begin(),     old.end(),     added.begin(), added.end(),
                  removed.begin(), removed.end(), out.begin(),   out.end()};
  kernels.patchPairs(patch);
  const auto copyUpTo = [&](const Pair* end) {
    patch.out = std::copy(patch.old, end, patch.out);
    patch.old = end;
  };
  while (patch.added != patch.addedEnd || patch.removed != patch.removedEnd) {
    const bool adds = patch.removed == patch.removedEnd ||
                      (patch.added != patch.addedEnd && *patch.added < *patch.removed);
    copyUpTo(std::lower_bound(patch.old, patch.oldEnd, adds ? *patch.added : *patch.removed));
    if (adds) {
      *patch.out++ = *patch.added++;
    } else {
      ++patch.old;
      ++patch.removed;
    }
  }
  copyUpTo(patch.oldEnd);
}

void patchPairs(Pair* pairs, std::size_t size, View<const Pair> added, View<const Pair> removed,
                View<std::uint64_t> places) {
  const std::size_t changes = added.size() + removed.size();
  const auto isAdded = [&](std::size_t k) { return (places[k] & 1) != 0; };
  const auto placeOf = [&](std::size_t k) { return static_cast<std::size_t>(places[k] >> 1); };
  findPlaces({pairs, size}, added, removed, places);
  // The pairs between two changes are a run. It moves by the number of earlier additions minus the
  // number of earlier removals. First the runs that move to higher indices are moved, from the last
  // run to the first. Then the other runs are moved, from the first to the last. So no pair
  // overwrites a pair that has yet to move.
  std::ptrdiff_t shift =
      static_cast<std::ptrdiff_t>(added.size()) - static_cast<std::ptrdiff_t>(removed.size());
  std::size_t end = size;
  for (std::size_t k = changes; k-- > 0;) {
    const std::size_t begin = placeOf(k) + !isAdded(k);
    if (shift > 0) std::move_backward(pairs + begin, pairs + end, pairs + end + shift);
    shift -= isAdded(k) ? 1 : -1;
    end = placeOf(k);
  }
  const Pair* next = added.begin();
  for (std::size_t k = 0; k < changes; ++k) {
    if (isAdded(k)) pairs[static_cast<std::ptrdiff_t>(placeOf(k)) + shift] = *next++;
    shift += isAdded(k) ? 1 : -1;
    const std::size_t begin = placeOf(k) + !isAdded(k);
    if (shift < 0)
      std::move(pairs + begin, pairs + (k + 1 < changes ? placeOf(k + 1) : size),
                pairs + static_cast<std::ptrdiff_t>(begin) + shift);
  }
}

}  // namespace lbvh
