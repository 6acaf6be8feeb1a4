// SPDX-License-Identifier: Zlib
// For each box of many worlds the list of its neighbours: those in its own world, and those in all
// worlds. Which pairs count is asked right after a list was found. The inner loops are those of
// find_neighbours.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "broadphase/core/device_input.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/world_blocks.h"

namespace lbvh {

/// What is wanted of a search.
struct WorldSearchRequest {
  PairRule rule;  ///< beside the filters, which the blocks have
  ListKind kind;
  std::uint64_t maxPairs;       ///< more stop the search
  View<std::uint32_t> byWorld;  ///< empty, or how many pairs each world has; last: all worlds
};

class WorldSearch {
 public:
  WorldSearch(HostTasks& tasks, const SimdKernels& kernels);
  ~WorldSearch();

  /// @param lists those of all boxes, `lists.indices` of as many elements as they have together;
  ///   valid until the next search. Not complete if the search was stopped.
  /// @return how many pairs there are; if more than maxPairs, the search was stopped
  std::uint64_t find(const WorldBlocks& worlds, std::size_t boxes,
                     const WorldSearchRequest& request, NeighbourLists& lists);

 private:
  struct Worker;
  class Task;

  void prepare(const WorldBlocks& worlds, std::size_t boxes);
  void searchAll(const WorldBlocks& worlds, const WorldSearchRequest& request);
  std::size_t sharedWords() const;
  void listShared(const World& shared, std::size_t boxes, std::size_t begin);

  static constexpr std::size_t kExpected = 8;  ///< neighbours of a box

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostRadixSort sort_;
  std::vector<std::unique_ptr<Worker>> workers_;
  NeighbourLists lists_{};
  std::atomic<std::uint64_t> entries_{0};  ///< of all lists, but those of boxes in all worlds
  std::atomic<std::uint64_t> pairs_{0};
  HostBuffer<NeighbourList> byBox_;
  HostBuffer<std::uint32_t> indices_;
  HostBuffer<std::uint64_t> words_, spare_;
};

}  // namespace lbvh
