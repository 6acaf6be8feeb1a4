// SPDX-License-Identifier: Zlib
// Runs stages 6 and 7 of a step on the host's threads. Turns lists of neighbours into sorted pairs.
// Compares two sorted lists of pairs in one pass, in chunks. The inner loops are in
// simd/pair_lists.inl.
#pragma once

#include <cstdint>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/types.h"

namespace lbvh {

class NeighbourSort {
 public:
  NeighbourSort(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Sorts the lists of boxes [0, boxes), and writes them as pairs. The pairs must fill `out`
  /// exactly.
  void writePairs(NeighbourLists lists, std::size_t boxes, View<Pair> out);

  /// Sorts the lists, and writes them one after the other.
  /// @param offsets receives where each list begins, and where the last one ends
  void writeLists(NeighbourLists lists, std::size_t boxes, View<std::uint32_t> out,
                  std::uint32_t* offsets);

  std::size_t memoryBytes() const { return chunkStarts_.bytes() + indexSets_.bytes(); }

 private:
  struct Chunk {
    std::size_t worker;
    std::uint32_t first, end;  ///< boxes
    std::size_t start, size;   ///< neighbours
  };

  template <class Sort>
  void forChunks(const NeighbourLists& lists, std::size_t boxes, const Sort& sort);
  void growIndexSets(std::size_t boxes);
  IndexSet indexSet(std::size_t worker) const;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<std::uint64_t> chunkStarts_;
  HostBuffer<std::uint64_t> indexSets_;  ///< one IndexSet for each worker
  std::size_t indexSetSize_ = 0;
};

// Two ways to apply changes to a sorted list of pairs. The changes are sorted. Each removed pair
// must be in the list, and no added pair may be in it.

/// Writes the changed list to `out`. The time depends on the number of pairs, and little on the
/// number of changes.
/// @param out receives the result; needs capacity for old.size() + added.size() - removed.size()
/// pairs
void mergeChanges(const SimdKernels& kernels, View<const Pair> old, View<const Pair> added,
                  View<const Pair> removed, View<Pair> out);

/// Changes the list in place. Moves only pairs after the first change, but takes longer per change
/// than mergeChanges().
/// @param pairs `size` pairs, and memory for the added pairs
/// @param places memory for one number per change
void patchPairs(Pair* pairs, std::size_t size, View<const Pair> added, View<const Pair> removed,
                View<std::uint64_t> places);

class HostPairDelta {
 public:
  struct Lists {
    View<Pair> added, removed;
  };

  /// @param chunk number of new pairs that a thread compares at a time
  explicit HostPairDelta(const SimdKernels& kernels, std::size_t chunk = 8192)
      : kernels_(kernels), chunkSize_(chunk) {}

  /// Writes to `added` the pairs that are only in `newPairs`, and to `removed` those that are only
  /// in `oldPairs`. Ignores old pairs of removed objects: they are not written to `removed`, and a
  /// new pair that equals one of them is written to `added`.
  /// @param added memory for newPairs.size() pairs
  /// @param removed memory for oldPairs.size() pairs; may be the memory of oldPairs
  Lists compare(HostTasks& tasks, View<const Pair> oldPairs, View<const Pair> newPairs,
                View<const std::uint8_t> removedObjects, Pair* added, Pair* removed);

  std::size_t memoryBytes() const { return chunks_.bytes(); }

 private:
  struct Chunk {
    std::size_t newBegin, newEnd, oldBegin, oldEnd;
    std::size_t added, removed;
  };

  void merge(Chunk& chunk, const Pair* oldPairs, const Pair* newPairs,
             View<const std::uint8_t> removedObjects, const Lists& out) const;

  const SimdKernels& kernels_;
  std::size_t chunkSize_;
  HostBuffer<Chunk> chunks_;
};

}  // namespace lbvh
