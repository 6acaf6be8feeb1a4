// SPDX-License-Identifier: Zlib
// The candidates of each box: all boxes whose grown boxes (skin.h) its own overlaps, and of each
// whether the boxes themselves overlapped in the last step. While no box leaves its grown box, all
// pairs are among them, so a step tests only the candidates of boxes that have changed. Does not
// search, and does not know why a box was searched for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/host/verlet/compare_left.h"
#include "broadphase/host/verlet/pair_words.h"
#include "broadphase/host/verlet/skin_account.h"
#include "broadphase/types.h"

namespace lbvh {

class Candidates {
 public:
  Candidates(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Takes over the lists of a search among all grown boxes, in which each box has all that it
  /// overlaps. Leaves in them what the boxes themselves overlap, of greater index.
  /// @return how many pairs those are
  std::size_t adopt(const NeighbourLists& lists, View<const Aabb> boxes, View<const Aabb> grown);

  /// False if the lists were such that one cannot go on from them: nothing is known.
  bool areKnown() const { return areKnown_; }
  /// Gives the memory back.
  void forget();

  /// Boxes with very many candidates, sorted. If one of them changes, it must be among those that
  /// have left, and be told whom it may have to leave: all that its last grown box overlaps.
  View<Hub> hubs() { return {hubs_.data(), hubs_.size()}; }

  /// Finds the changes of a step. Nothing is final before commit(), so that a step may fail.
  /// @param lists for each box that has left, all that its grown box overlaps
  /// @return false if there is no room: then all must be searched for
  bool compare(const BoxChanges& changes, const NeighbourLists& lists);
  /// Adds up what that has done.
  void count(StepWork& work) const;
  /// The changes, in no order, and how they are to be read.
  View<std::uint64_t> changes() { return {changes_.data(), changes_.size()}; }
  PairWords words() const { return words_; }
  /// How many pairs there are after the step.
  std::size_t pairsAfter() const { return pairsAfter_; }
  void commit(const BoxChanges& changes, const NeighbourLists& lists);

  /// How many pairs there were in the last step, and room for their lists.
  std::size_t pairs() const { return pairs_; }
  std::size_t boxes() const { return rows_.size(); }
  std::size_t roomForLists() const;
  /// For each box those of greater index that it overlapped in the last step.
  void writeLists(const NeighbourLists& lists) const;

  std::size_t memoryBytes() const;

 private:
  static constexpr std::uint32_t kOverlaps = CandidateRows::kOverlaps;
  static constexpr std::uint32_t kIndex = CandidateRows::kIndex, kIsHub = CandidateRows::kIsHub;
  static constexpr std::size_t kAtOnce = 64;  ///< candidates that are tested together
  static constexpr std::size_t kMostHubs = 64;

  bool layOut(const NeighbourLists& lists, View<const Aabb> boxes, View<const Aabb> grown);
  std::uint32_t fill(std::uint32_t i, const NeighbourLists& lists, View<const Aabb> boxes);
  void testChanged(const BoxChanges& changes);
  template <class Visit>
  void forRows(View<const Aabb> boxes, View<const std::uint32_t> ids, const Visit& visit) const;
  void testRow(const BoxChanges& changes, std::uint32_t i, View<const std::uint32_t> entries,
               std::vector<std::uint64_t>& found) const;
  bool makeRoom(const BoxChanges& changes, const NeighbourLists& lists);
  void applyEdits(View<const RowEdit> edits, std::size_t begin, std::size_t end);
  void applyFlips(View<const std::uint64_t> flips, std::size_t begin, std::size_t end);
  void fillLeft(View<const std::uint32_t> left, const NeighbourLists& lists);
  void writeHubLists(const NeighbourLists& lists) const;
  template <class Visit>
  void forHubPairs(const Visit& visit) const;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  CandidateRows rows_;
  std::vector<Hub> hubs_;
  std::size_t pairs_ = 0, pairsAfter_ = 0;
  PairWords words_{0};
  std::vector<std::vector<std::uint64_t>> flips_;  ///< by part: of boxes that have not left
  std::atomic<std::uint64_t> tested_{0};
  LeftComparison left_;
  std::vector<std::uint64_t> changes_;
  bool areKnown_ = false;
};

}  // namespace lbvh
