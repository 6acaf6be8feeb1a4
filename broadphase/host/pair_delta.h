// SPDX-License-Identifier: Zlib
// Stage 7 of a step on the host, over its threads: merges two sorted lists of pairs in one pass, in
// chunks. The inner loop is in simd/delta.inl.
#pragma once

#include <algorithm>
#include <cstdint>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/verlet/pair_words.h"
#include "broadphase/types.h"

namespace lbvh {

/// First index in the sorted `pairs` whose pair is not before `pair`.
inline std::size_t lowerBound(View<const Pair> pairs, Pair pair) {
  std::size_t begin = 0, size = pairs.size;
  while (size > 0) {
    const std::size_t half = size / 2;
    const bool before = pairs[begin + half] < pair;
    begin = before ? begin + half + 1 : begin;
    size = before ? size - half - 1 : half;
  }
  return begin;
}

class HostPairDelta {
 public:
  struct Lists {
    View<Pair> added, removed;
  };

  /// @param chunk how many new pairs one thread compares at a time
  explicit HostPairDelta(const SimdKernels& kernels, std::size_t chunk = 8192)
      : kernels_(kernels), chunkSize_(chunk) {}

  /// Writes the pairs that only `newPairs` has to `added`, which has room for all of them. Writes
  /// the pairs that only `oldPairs` has over `oldPairs`. Old pairs of a removed object count as
  /// neither living nor removed.
  Lists compare(HostTasks& tasks, View<Pair> oldPairs, View<const Pair> newPairs,
                View<const std::uint8_t> removedObjects, Pair* added) {
    const std::size_t count =
        std::max<std::size_t>(1, (newPairs.size + chunkSize_ - 1) / chunkSize_);
    const View<Chunk> chunks = chunks_.ensure(count);
    for (std::size_t k = 0; k < count; ++k) {  // before any old pair is written over
      Chunk& chunk = chunks[k];
      chunk.newBegin = k * chunkSize_;
      chunk.newEnd = std::min(newPairs.size, (k + 1) * chunkSize_);
      chunk.oldBegin = k == 0 ? 0 : lowerBound(oldPairs, newPairs[chunk.newBegin]);
      chunk.oldEnd = oldPairs.size;
      if (k > 0) chunks[k - 1].oldEnd = chunk.oldBegin;
    }
    tasks.forRanges(count, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        merge(chunks[k], oldPairs.data, newPairs.data, removedObjects, added);
    });
    Lists lists{{added, 0}, {oldPairs.data, 0}};
    for (const Chunk& chunk : chunks) {
      close(lists.added, added + chunk.newBegin, chunk.added);
      close(lists.removed, oldPairs.data + chunk.oldBegin, chunk.removed);
    }
    return lists;
  }

  std::size_t memoryBytes() const { return chunks_.bytes(); }

 private:
  static constexpr PairWords kKeys{32};

  struct Chunk {
    std::size_t newBegin, newEnd, oldBegin, oldEnd;
    std::size_t added, removed;
  };

  void merge(Chunk& chunk, Pair* oldPairs, const Pair* newPairs,
             View<const std::uint8_t> removedObjects, Pair* added) const {
    DeltaMerge state{newPairs + chunk.newBegin, newPairs + chunk.newEnd, oldPairs + chunk.oldBegin,
                     oldPairs + chunk.oldEnd,   added + chunk.newBegin,  oldPairs + chunk.oldBegin};
    if (removedObjects.empty()) kernels_.mergeDelta(state);
    auto [n, nEnd, o, oEnd, add, remove] = state;
    const auto counts = [&](Pair pair) {
      return removedObjects.empty() || !involvesRemoved(pair, removedObjects);
    };
    while (n != nEnd && o != oEnd) {
      const std::uint64_t newKey = kKeys.of(*n), oldKey = kKeys.of(*o);
      if (newKey == oldKey) {  // nearly always
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
    chunk.added = static_cast<std::size_t>(add - (added + chunk.newBegin));
    chunk.removed = static_cast<std::size_t>(remove - (oldPairs + chunk.oldBegin));
  }

  /// Appends `count` pairs that lie further behind in the list's own memory.
  static void close(View<Pair>& list, const Pair* from, std::size_t count) {
    if (list.end() != from) std::copy(from, from + count, list.end());
    list.size += count;
  }

  const SimdKernels& kernels_;
  std::size_t chunkSize_;
  HostBuffer<Chunk> chunks_;
};

}  // namespace lbvh
