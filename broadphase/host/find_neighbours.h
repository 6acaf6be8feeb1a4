// SPDX-License-Identifier: Zlib
// Stage 5 of a step on the host, over its threads: for each box the list of its neighbours, from
// boxes that are packed into blocks (build_blocks.h). The inner loops are in simd/search.inl.
// Differs from the shared traversal because it was measured: a random walk of 65,536 boxes on one
// thread takes 5 ms a step instead of 25.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/host/block_tree.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

class NeighbourSearch {
 public:
  NeighbourSearch(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), kernels_(kernels) {}

  /// Writes the list of each box that is packed in `queries`: the boxes of `targets` that it
  /// overlaps, all or half of them.
  /// @param mostTests after so many tests() the search stops
  /// @return how many neighbours there are. Lists that did not fit into lists.indices are not
  ///   complete; beyond `limit`, and if the search has stopped, not all neighbours were counted.
  std::uint64_t find(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                     const NeighbourLists& lists, std::uint64_t limit,
                     std::uint64_t mostTests = ~std::uint64_t{0});

  /// How often the last search has tested a box against a block: what it cost. The same on every
  /// thread count, unless the search has stopped.
  std::uint64_t tests() const { return tests_; }

  std::size_t memoryBytes() const { return memory_.bytes(); }

 private:
  void findTreeLists(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                     const NeighbourLists& lists, const NeighbourCount& count);
  void findOversizedLists(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                          const NeighbourLists& lists, const NeighbourCount& count);
  SearchMemory memoryOf(std::size_t worker, std::size_t leafBlocks) const;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<std::uint32_t> memory_;  ///< of all workers
  std::atomic<std::uint64_t> tests_{0};
};

}  // namespace lbvh
