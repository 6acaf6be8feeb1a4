// SPDX-License-Identifier: Zlib
// Keeps the candidates of each box: all boxes whose grown boxes (skin.h) overlap its grown box.
// Each candidate has a flag: whether the boxes themselves overlapped in the last step. While no box
// escapes from its grown box, all pairs are among the candidates. So a step tests only the
// candidates of boxes that have changed. Does not search.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/pair_words.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/host/verlet/compare_escaped.h"
#include "broadphase/host/verlet/skin_account.h"
#include "broadphase/types.h"

namespace lbvh {

class Candidates {
 public:
  Candidates(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Copies the candidates from the full lists of a search of all grown boxes. Then reduces the
  /// list of each box to its pairs: the boxes of greater index that overlap the box.
  /// @return the number of pairs
  std::size_t adopt(NeighbourLists lists, View<const Aabb> boxes, View<const Aabb> grown);

  /// False if adopt() found too many candidates to store.
  bool areKnown() const { return areKnown_; }
  /// Frees the memory.
  void forget();

  /// The boxes with very many candidates, sorted by index. A changed hub must be treated as
  /// escaped, and its `former` must list all boxes that its previous grown box overlaps.
  View<Hub> hubs() { return {hubs_.data(), hubs_.size()}; }

  /// Finds the changes of a step. Only commit() makes them final, because the step may still fail
  /// before that.
  /// @param lists for each escaped box, all boxes that its grown box overlaps; the call replaces
  ///   them with the entries of the box's row
  /// @return false if a row would get too long; then the step must search for the
  ///   pairs of all boxes
  bool compare(const BoxChanges& changes, NeighbourLists lists);
  /// Adds the work of compare() to `work`.
  void count(StepWork& work) const;
  /// The changes, unsorted, in the format of words().
  View<std::uint64_t> changes() { return {changes_.data(), changes_.size()}; }
  PairWords words() const { return words_; }
  std::size_t pairsAfter() const { return pairsAfter_; }
  void commit(const BoxChanges& changes, const NeighbourLists& lists);

  /// Number of pairs in the last step.
  std::size_t pairs() const { return pairs_; }
  std::size_t boxes() const { return rows_.size(); }
  /// Number of indices that writeLists() needs.
  std::size_t capacityForLists() const;
  /// Writes for each box the boxes of greater index that it overlapped in the last step.
  void writeLists(NeighbourLists lists) const;

  const CandidateRows& rows() const { return rows_; }

  std::size_t memoryBytes() const;

 private:
  static constexpr std::uint32_t kOverlaps = CandidateRows::kOverlaps;
  static constexpr std::uint32_t kIndex = CandidateRows::kIndex, kIsHub = CandidateRows::kIsHub;
  static constexpr std::size_t kAtOnce = 64;  ///< candidates that are tested together
  static constexpr std::size_t kMaxHubs = 64;

  static std::size_t mostEntries(View<const NeighbourList> lists);
  bool layOut(const NeighbourLists& lists, View<const Aabb> boxes, View<const Aabb> grown);
  std::uint32_t fill(std::uint32_t i, NeighbourLists lists, View<const Aabb> boxes);
  void testChanged(const BoxChanges& changes);
  template <class Visit>
  void forRows(View<const Aabb> boxes, View<const std::uint32_t> ids, const Visit& visit) const;
  void testRow(const BoxChanges& changes, std::uint32_t i, View<const std::uint32_t> entries,
               std::vector<std::uint64_t>& found) const;
  bool reserveRows(const BoxChanges& changes, const NeighbourLists& lists);
  void applyEdits(View<const RowEdit> edits, std::size_t begin, std::size_t end);
  void applyFlips(View<const std::uint64_t> flips, std::size_t begin, std::size_t end);
  void fillEscaped(View<const std::uint32_t> escaped, const NeighbourLists& lists);
  void writeHubLists(NeighbourLists lists) const;
  template <class Visit>
  void forHubPairs(const Visit& visit) const;

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  CandidateRows rows_;
  std::vector<Hub> hubs_;
  std::size_t pairs_ = 0, pairsAfter_ = 0;
  PairWords words_{0};
  /// By part: changes of pairs in which neither box has escaped.
  std::vector<std::vector<std::uint64_t>> flips_;
  std::atomic<std::uint64_t> tested_{0};
  EscapeComparison escapes_;
  std::vector<std::uint64_t> changes_;
  bool areKnown_ = false;
};

}  // namespace lbvh
