// A step as the host runs it, but for the sort by key: boxes packed into blocks of sixteen along a
// Hilbert curve, for each box a list of its neighbours, the lists sorted into pairs, the pairs
// compared with the last ones. Splits the work over threads; the inner loops are in
// host_kernels_body.h. Differs from the shared stages because it was measured: random walk of
// 65,536 boxes, one thread, a step of 6 ms instead of 22.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/exec/host_buffer.h"
#include "broadphase/exec/host_delta.h"
#include "broadphase/exec/host_kernels.h"
#include "broadphase/exec/host_tasks.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

class HostSearch {
 public:
  explicit HostSearch(HostTasks& tasks) : tasks_(tasks), kernels_(hostKernels()) {}

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

  /// Nodes of memory that pack() needs for the blocks over n boxes.
  static std::size_t nodesFor(std::size_t n);

  /// @param ids the boxes in Morton order, then the side boxes, then those with a NaN
  void pack(View<const Aabb> boxes, View<const Filter> filters, const std::uint32_t* ids,
            const SceneBounds& scene, View<Node> memory);

  /// Each box's list, into the room. Returns how many neighbours there are: those that did not fit
  /// were counted only, and beyond the limit not all were.
  std::uint64_t find(View<std::uint32_t> room, std::uint64_t limit);

  /// All pairs, sorted; `out` has room for as many as were found.
  void sort(Pair* out);

  /// What differs between the sorted lists; see host_delta.h.
  HostDelta::Lists compare(View<Pair> oldPairs, View<const Pair> newPairs,
                           View<const std::uint8_t> forgotten, Pair* added) {
    return delta_.compare(tasks_, oldPairs, newPairs, forgotten, added);
  }

  std::size_t memoryBytes() const;

 private:
  void findTreeLists(const NeighbourLists& lists);
  void findSideLists(const NeighbourLists& lists);
  void growIndexSets();
  SearchScratch scratch(std::size_t worker) const;
  IndexSet indexSet(std::size_t worker) const;

  HostTasks& tasks_;
  const HostKernels& kernels_;
  SearchInput input_;
  View<const std::uint32_t> nan_;  ///< boxes that overlap nothing
  View<std::uint32_t> room_;       ///< of the last find()
  std::atomic<std::uint64_t> found_{0};
  HostBuffer<NeighbourLists::List> lists_;
  HostBuffer<std::uint64_t> chunkStarts_;
  HostBuffer<std::uint32_t> scratch_;  ///< of all workers
  HostBuffer<std::uint64_t> indexSets_;
  std::size_t indexSetSize_ = 0;
  HostDelta delta_;
  HostBuffer<SceneBounds> partial_;
};

}  // namespace lbvh
