// SPDX-License-Identifier: Zlib
// Finds the neighbours of each box of many worlds, in the box's own world and among the boxes that
// are in all worlds. The search is in blocks.h. This class applies the pair rule, and joins the two
// lists of each box.
#pragma once

#include <cstdint>
#include <vector>

#include "broadphase/core/device_input.h"
#include "broadphase/host/blocks.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/world_blocks.h"

namespace lbvh {

struct WorldSearchRequest {
  PairRule rule;                ///< without filters, which are in the blocks
  ListKind kind;                ///< half or full
  std::uint64_t maxPairs;       ///< the search stops if it finds more pairs than this
  View<std::uint32_t> byWorld;  ///< empty, or receives the number of pairs of each world
};

class WorldSearch {
 public:
  WorldSearch(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), search_(tasks, kernels) {}

  /// @param lists receives the list of each box, without the box itself. The size of
  ///   `lists.indices` is the total size of all lists. Valid until the next search. Not written if
  ///   the search was stopped.
  /// @return the number of pairs; if it exceeds maxPairs, the search was stopped
  std::uint64_t find(const WorldBlocks& worlds, std::size_t boxes,
                     const WorldSearchRequest& request, NeighbourLists& lists);

 private:
  /// Lists of all boxes, and their memory.
  struct Lists {
    HostBuffer<NeighbourList> byBox;
    HostBuffer<std::uint32_t> indices;

    NeighbourLists view() { return {indices.ensure(indices.capacity()), byBox.data()}; }
    View<const std::uint32_t> of(std::size_t id) const {
      return {indices.data() + byBox.data()[id].start, byBox.data()[id].size};
    }
  };

  std::uint64_t findShared(const WorldBlocks& worlds, std::size_t boxes,
                           const WorldSearchRequest& request);
  std::uint64_t findOwn(const WorldBlocks& worlds, const WorldSearchRequest& request);
  std::uint64_t search(ListKind kind, const PairRule& rule, std::uint64_t limit, Lists& lists);
  void countByWorld(const WorldBlocks& worlds, const WorldSearchRequest& request, bool areShared);
  void joinLists(std::size_t boxes, bool isFull, std::size_t listed, std::size_t shared);
  void listReverse(View<std::uint64_t> words, std::size_t boxes, std::size_t end);

  HostTasks& tasks_;
  NeighbourSearch search_;
  HostRadixSort sort_;
  std::vector<SearchPart> parts_;
  Lists own_, shared_, joined_;
  HostBuffer<std::uint64_t> words_;
};

}  // namespace lbvh
