// SPDX-License-Identifier: Zlib
// Compares the new and the previous candidates of each box that has escaped from its grown box
// (skin.h). Finds the pairs that have begun or ended, and the edits that other boxes' rows need.
// Changes no row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/changes.h"
#include "broadphase/core/pair_words.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/types.h"

namespace lbvh {

/// What has changed since the last step.
struct BoxChanges {
  View<const Aabb> boxes;
  /// A bit for each changed box, except boxes within their reach (reaches.h). Escaped boxes may
  /// have no bit.
  View<const std::uint64_t> changed;
  std::size_t changes;                ///< number of boxes in `changed` or `escaped`
  View<const std::uint64_t> escaped;  ///< a bit for each escaped box
  /// The indices of the words of `changed` and `escaped` that can be nonzero.
  View<const std::uint32_t> words;
  View<const std::uint32_t> escapedIds;     ///< indices of the escaped boxes
  View<const std::uint8_t> removedObjects;  ///< as in StepInput
  View<const Aabb> grown;                   ///< by box; escaped boxes have new grown boxes

  bool hasChanged(std::uint32_t i) const { return hasBit(changed, i) || hasEscaped(i); }
  bool hasEscaped(std::uint32_t i) const { return hasBit(escaped, i); }
};

class EscapeComparison {
 public:
  /// The results of one thread.
  struct Part {
    std::vector<std::uint64_t> changes;
    std::vector<RowEdit> edits;  ///< edits of the rows of boxes that have not escaped
    std::size_t ended = 0;       ///< number of ended pairs of removed objects
    std::size_t entries = 0;     ///< number of compared entries, of previous and of new rows
    /// By box: whether it was in the row that is being compared, and whether it overlapped the box
    /// of that row. All marks are 0 between two comparisons.
    std::vector<std::uint8_t> marks;
  };

  /// @param lists for each escaped box, all boxes that its grown box overlaps; the call replaces
  ///   them with the entries of the box's row
  /// @param hubs sorted by id; escaped hubs must have Hub::former
  void compare(HostTasks& tasks, const BoxChanges& changes, const CandidateRows& rows,
               View<const Hub> hubs, NeighbourLists lists, PairWords words);

  /// Discards all results, including those of a failed comparison.
  void reset() {
    parts_.clear();
    used_ = 0;
  }

  View<const Part> parts() const { return {parts_.data(), used_}; }
  std::size_t memoryBytes() const;

 private:
  std::vector<Part> parts_;  ///< never shrinks in compare(), to keep the marks' memory
  std::size_t used_ = 0;
};

}  // namespace lbvh
