// SPDX-License-Identifier: Zlib
// Keeps the pairs of the last step, and their changes since the step before it. Runs stages 6 and 7
// of a step on the host. Does not search.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/pair_words.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/types.h"

namespace lbvh {

/// A step calls begin(), and at its end either compare() or change(). After change() the pairs
/// themselves may be listed later, or never.
class PairHistory {
 public:
  using Scratch = lbvh::Scratch<HostMemory>;

  PairHistory(HostSpace& space, const SimdKernels& kernels)
      : space_(space), kernels_(kernels), sort_(space.tasks(), kernels), delta_(kernels) {}

  /// Empties added() and removed(), because the step will overwrite their memory.
  void begin() noexcept;

  /// Memory for the results of a search. compare() overwrites it with the added pairs.
  Scratch& foundMemory() { return found_; }
  View<Pair> lendFound(std::size_t pairs) {
    found_.reset(scratchBytes<Pair>(pairs));
    return found_.lend<Pair>("pairs", pairs);
  }
  /// Frees the memory that a search for the pairs of all boxes has needed. Invalidates added() and
  /// removed().
  void releaseSpare();

  /// Runs stages 6 and 7 for a step that has found all its pairs. The pairs of the previous step
  /// must be listed.
  /// @param lists for each box, the boxes of greater index that overlap it; not sorted
  /// @param pairs number of indices in the lists
  /// @throws std::bad_alloc; then nothing has changed
  void compare(const StepInput& input, NeighbourLists lists, std::size_t pairs, StepStats& stats);

  /// Runs stage 7 for a step that has found only the changes.
  /// @param changes not sorted; the call may sort them
  /// @param pairs number of pairs after the step
  /// @throws std::bad_alloc; then nothing has changed
  void change(const StepInput& input, View<std::uint64_t> changes, PairWords words,
              std::size_t pairs);

  /// Replaces the pairs of the last step. @throws std::bad_alloc
  void set(View<const Pair> pairs);

  /// Lists the pairs of the last step by applying its changes, if the pairs of the step before it
  /// are listed.
  /// @return whether the pairs are listed now; if not, only list() can list them
  /// @throws std::bad_alloc
  bool listByChange();
  /// Lists the pairs. @param lists the pairs of the last step, in the form that compare() takes
  /// @throws std::bad_alloc
  void list(NeighbourLists lists, std::size_t boxes);

  /// Whether pairs() has the pairs of the last step.
  bool isListed() const { return listed_ == Listed::all; }

  std::size_t size() const { return size_; }             ///< number of pairs of the last step
  View<const Pair> pairs() const { return pairs_; }      ///< sorted; requires isListed()
  View<const Pair> added() const { return added_; }      ///< sorted
  View<const Pair> removed() const { return removed_; }  ///< sorted

  /// Writes the numbers of pairs to `stats`.
  void describe(StepStats& stats) const;
  std::size_t memoryBytes() const;

 private:
  /// Which pairs are in pairs_.
  enum class Listed {
    all,          ///< the pairs of the last step
    lacksChange,  ///< the pairs of the step before it; added_ and removed_ are the changes since
    none
  };
  void patchList();

  HostSpace& space_;
  const SimdKernels& kernels_;
  NeighbourSort sort_;
  HostPairDelta delta_;
  Listed listed_ = Listed::all;
  bool isAsked_ = false;  ///< whether the list was requested since the last step; only then does a
                          ///< step without changes keep it
  std::size_t size_ = 0;
  HostBuffer<Pair> list_;   ///< memory of pairs_
  Scratch found_;           ///< results of a search, later overwritten by added pairs
  HostBuffer<Pair> spare_;  ///< pairs of the previous step, later overwritten by removed pairs
  View<Pair> pairs_;
  HostBuffer<Pair> changes_;
  View<const Pair> added_, removed_;
};

}  // namespace lbvh
