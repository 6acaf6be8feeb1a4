// SPDX-License-Identifier: Zlib
// Keeps the pairs of plain steps by rank. A box's rank is its place in the order along the curve,
// which is kept over many steps. A search finds pairs sorted by rank, each once. So two steps can
// be compared without sorting. In each step only the changes are sorted by index. All pairs are
// sorted by index when pairs() is called. Oversized boxes have their own lists, by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/pair_words.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/types.h"

namespace lbvh {

class RankedPairs {
 public:
  using Scratch = lbvh::Scratch<HostMemory>;

  RankedPairs(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), sort_(tasks, kernels), delta_(kernels) {}

  /// The result of a search.
  struct Found {
    Scratch memory;
    View<Pair> byRank;                     ///< sorted; without pairs of oversized boxes
    std::vector<std::uint32_t> oversized;  ///< indices of the oversized boxes, ascending
    /// For each oversized box: the boxes that it overlaps, ascending.
    std::vector<std::vector<std::uint32_t>> met;
    std::size_t boxes = 0;
    std::size_t pairs = 0;  ///< number of all pairs
  };

  /// The result of the last step. Valid if areKnown().
  const Found& last() const { return last_; }
  bool areKnown() const { return areKnown_; }
  void forget() { areKnown_ = false; }
  /// Forgets the results and frees their memory, which steps with a skin do not need.
  void release();
  /// Whether the last result is of the same oversized boxes.
  bool haveSameOversized(const PackedBoxes& packed) const;

  /// Gives the last result new ranks.
  /// @param before,after the indices of the boxes, by their ranks. May have more boxes after
  /// @param lists scratch memory with capacity for all pairs and all new ranks
  /// @throws std::bad_alloc; then nothing has changed
  void renumber(View<const std::uint32_t> before, View<const std::uint32_t> after,
                NeighbourLists lists);

  /// Begins the next result with the pairs of oversized boxes.
  /// @return the number of these pairs
  std::size_t meetOversized(const PackedBoxes& packed);
  /// Completes the next result with the other pairs. @param lists neighbours by rank
  void join(const NeighbourLists& lists, std::size_t ranks);
  const Found& next() const { return next_; }

  /// Finds the changes from the last result to the next. Both must have the same order and the same
  /// oversized boxes.
  /// @param ids the indices of the boxes, by rank
  /// @param removedObjects by index: the last pairs of a flagged box are ignored
  /// @param memory scratch memory for pairs
  void compare(View<const std::uint32_t> ids, View<const std::uint8_t> removedObjects,
               Scratch& memory);
  /// The changes, unsorted.
  View<std::uint64_t> changes() { return {changes_.data(), changes_.size()}; }
  PairWords words() const { return words_; }

  /// Makes the next result the last one.
  void keep();

  /// Writes the neighbours of the boxes by index. The lists are not sorted.
  /// @param lists must have capacity for all pairs and boxes
  static void writeLists(const Found& found, View<const std::uint32_t> ids, NeighbourLists lists);

  std::size_t memoryBytes() const;

 private:
  View<const std::uint8_t> removedRanks(View<const std::uint32_t> ids,
                                        View<const std::uint8_t> removedObjects);
  void compareOversized(std::size_t k, View<const std::uint8_t> removedObjects);

  HostTasks& tasks_;
  NeighbourSort sort_;
  HostPairDelta delta_;
  Found last_, next_;
  bool areKnown_ = false;
  PairWords words_{0};
  std::vector<std::uint64_t> changes_;
  std::vector<std::uint8_t> removedRanks_;
  HostBuffer<std::uint32_t> newRanks_;  ///< by index; scratch memory of renumber()
};

}  // namespace lbvh
