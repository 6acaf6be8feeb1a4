// SPDX-License-Identifier: Zlib
// Keeps the pairs of steps without a skin by rank, as hits (ranked_hits.h). A box's rank is its
// index in the order along the curve, which is kept over many steps. A search finds hits sorted by
// rank, and each pair once. So two steps can be compared without sorting. In each step only the
// changes are sorted by index. All pairs are sorted by index when pairs() is called. Oversized
// boxes have their own lists, by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/pair_words.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/hits_delta.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/simd/ranked_hits.h"
#include "broadphase/types.h"

namespace lbvh {

class RankedPairs {
 public:
  using Scratch = lbvh::Scratch<HostMemory>;

  RankedPairs(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), kernels_(kernels), sort_(tasks, kernels), delta_(tasks, kernels) {}

  /// The result of a search.
  struct Found {
    Scratch memory;
    RankedHits ranked;                     ///< without pairs of oversized boxes
    std::size_t rankedPairs = 0;           ///< number of pairs in `ranked`
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
  /// Whether the last result has the same oversized boxes as `packed`.
  bool haveSameOversized(const PackedBoxes& packed) const;

  /// Converts the last result to new ranks.
  /// @param before,after the indices of the boxes, by old and by new rank; `after` may be longer
  /// @param byRank scratch memory for one list per new rank
  /// @param spare scratch memory
  /// @throws std::bad_alloc; then nothing has changed
  void renumber(View<const std::uint32_t> before, View<const std::uint32_t> after,
                NeighbourList* byRank, Scratch& spare);

  /// Begins the next result with the pairs of oversized boxes.
  /// @return the number of these pairs
  std::size_t meetOversized(const PackedBoxes& packed);
  /// The memory for the results of a search. A single thread finds hits in order, so its results
  /// are not copied later.
  Scratch& foundMemory(Scratch& spare) { return tasks_.threads() == 1 ? next_.memory : spare; }
  /// Completes the next result with the other pairs.
  /// @param lists in foundMemory()
  /// @param pairs number of pairs in `lists`
  void join(const RankLists& lists, std::size_t blocks, std::size_t pairs);
  const Found& next() const { return next_; }

  /// Finds the changes from the previous result to next(). Both must have the same order and the
  /// same oversized boxes.
  /// @param ids the indices of the boxes, by rank
  /// @param removedObjects by index: the previous pairs of a flagged box are ignored
  /// @param memory scratch memory
  void compare(View<const std::uint32_t> ids, View<const std::uint8_t> removedObjects,
               Scratch& memory);
  /// The changes, unsorted.
  View<std::uint64_t> changes() { return {changes_.data(), changes_.size()}; }
  PairWords words() const { return words_; }

  /// Keeps the result of this step as last(), for the next step.
  void keep();

  /// Writes each box's list of neighbours, by box index instead of rank. The lists are not sorted.
  /// @param lists must have capacity for all pairs and boxes
  void writeLists(const Found& found, View<const std::uint32_t> ids, NeighbourLists lists);

  std::size_t memoryBytes() const;

 private:
  View<std::uint32_t> wholeBlocks(std::size_t ranks);
  template <class Visit>
  void forRanked(const RankedHits& ranked, View<const std::uint32_t> numbers,
                 const Visit& visit) const;
  void compareOversized(std::size_t k, View<const std::uint8_t> removedObjects);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  NeighbourSort sort_;
  HitsDelta delta_;
  Found last_, next_;
  bool areKnown_ = false;
  PairWords words_{0};
  std::vector<std::uint64_t> changes_;
  HostBuffer<std::uint32_t> numbers_;   ///< by rank; scratch memory
  HostBuffer<std::uint32_t> newRanks_;  ///< by index; scratch memory of renumber()
};

}  // namespace lbvh
