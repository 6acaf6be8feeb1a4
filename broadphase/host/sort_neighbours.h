// SPDX-License-Identifier: Zlib
// Stage 6 of a step on the host, over its threads: lists of neighbours become sorted pairs. The
// inner loops are in simd/pair_sort.inl.
#pragma once

#include <cstdint>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

class NeighbourSort {
 public:
  NeighbourSort(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Writes the lists of boxes [0, boxes) as pairs, sorted. `out` has room for exactly as many as
  /// were found.
  void writePairs(const NeighbourLists& lists, std::size_t boxes, View<Pair> out);

  /// Writes the lists themselves, sorted, one behind the other; and where each begins, and the last
  /// one ends.
  void writeLists(const NeighbourLists& lists, std::size_t boxes, View<std::uint32_t> out,
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
  HostBuffer<std::uint64_t> indexSets_;  ///< of all workers
  std::size_t indexSetSize_ = 0;
};

}  // namespace lbvh
