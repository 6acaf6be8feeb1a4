// The search of a step on the host: boxes packed into blocks of sixteen along a Hilbert curve
// (host/build_blocks.h), for each box a list of its neighbours, the lists turned into sorted pairs.
// Splits the work over threads; the inner loops are in host/simd/*.inl. Differs from the
// shared stages because it was measured: random walk of 65,536 boxes, one thread, a step of 5 ms
// instead of 25.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/exec/host/buffer.h"
#include "broadphase/exec/host/tasks.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/host/merge_pairs.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class NeighbourSearch {
 public:
  explicit NeighbourSearch(HostTasks& tasks) : tasks_(tasks), kernels_(simdKernels()) {}

  void measure(View<const Aabb> boxes, SceneBounds* sum);

  /// Each box's key, by which it is to be sorted.
  template <class Key>
  void assignKeys(View<const Aabb> boxes, const Grid& grid, Key* keys, std::uint32_t* ids) {
    tasks_.forRanges(boxes.size, 4096, [&](std::size_t begin, std::size_t end) {
      if constexpr (sizeof(Key) == 4)
        kernels_.assignShortKeys(boxes, grid, keys, ids, begin, end);
      else
        kernels_.assignLongKeys(boxes, grid, keys, ids, begin, end);
    });
  }

  /// Into the room, the list of each box that is packed in `queries`: what it overlaps of
  /// `targets`, or, where they are the same, of the queries of greater index. Returns how many
  /// neighbours there are: those that did not fit were counted only, and beyond the limit not all
  /// were.
  /// @param memory two words a box, for where the lists are, until sort() or writeWords()
  std::uint64_t find(const PackedBoxes& queries, const PackedBoxes& targets, Node* memory,
                     View<std::uint32_t> room, std::uint64_t limit);

  /// The lists of all boxes as pairs, sorted; `out` has room for as many as were found.
  void sort(std::size_t boxes, Pair* out);

  /// The lists of some boxes as pairs in no order. `out` has room for as many as were found.
  void writeWords(View<const std::uint32_t> queries, PairWords format, std::uint64_t* out);

  std::size_t memoryBytes() const;

 private:
  void findTreeLists(const PackedBoxes& queries, const PackedBoxes& targets,
                     const NeighbourLists& lists);
  void findOversizedLists(const PackedBoxes& queries, const PackedBoxes& targets,
                          const NeighbourLists& lists);
  void growIndexSets(std::size_t boxes);
  SearchScratch scratch(std::size_t worker, std::size_t leafBlocks) const;
  IndexSet indexSet(std::size_t worker) const;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  NeighbourLists::List* lists_ = nullptr;  ///< of the last find(), and its room
  View<std::uint32_t> room_;
  std::atomic<std::uint64_t> found_{0};
  HostBuffer<std::uint64_t> chunkStarts_;
  HostBuffer<std::uint32_t> scratch_;  ///< of all workers
  HostBuffer<std::uint64_t> indexSets_;
  std::size_t indexSetSize_ = 0;
  HostBuffer<SceneBounds> partial_;
};

}  // namespace lbvh
