// SPDX-License-Identifier: Zlib
// Compares the candidates of boxes that have left their grown boxes (skin.h) with those that they
// had: which pairs have begun and ended, and how the rows of others change. Changes no row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/changes.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/verlet/candidate_rows.h"
#include "broadphase/host/verlet/hub.h"
#include "broadphase/host/verlet/pair_words.h"
#include "broadphase/types.h"

namespace lbvh {

/// What is another in a step than in the last one.
struct BoxChanges {
  View<const Aabb> boxes;
  View<const std::uint64_t> changed;        ///< a bit a box; those that have left are among them
  std::size_t changes;                      ///< how many
  View<const std::uint64_t> left;           ///< a bit a box
  View<const std::uint32_t> leftIds;        ///< the same
  View<const std::uint8_t> removedObjects;  ///< as in StepInput
  View<const Aabb> grown;                   ///< of those that have left, new ones

  bool hasChanged(std::uint32_t i) const { return hasBit(changed, i); }
  bool hasLeft(std::uint32_t i) const { return hasBit(left, i); }
};

class LeftComparison {
 public:
  /// What one thread has found.
  struct Part {
    std::vector<std::uint64_t> changes;
    std::vector<RowEdit> edits;  ///< of rows of boxes that have not left
    std::size_t ended = 0;       ///< pairs of removed objects
    std::size_t entries = 0;     ///< that were compared, of rows before and after
    /// By box: 0, but while a row is compared. Whether a box was in it, and overlapped.
    std::vector<std::uint8_t> marks;
  };

  /// @param lists for each box that has left, all that its grown box overlaps: they become the
  ///   entries of its row
  /// @param hubs sorted; those that have left know whom they may have to leave
  void compare(HostTasks& tasks, const BoxChanges& changes, const CandidateRows& rows,
               View<const Hub> hubs, const NeighbourLists& lists, PairWords words);

  /// After a search for all. Whatever a comparison that failed has left behind is gone.
  void reset() {
    parts_.clear();
    used_ = 0;
  }

  View<const Part> parts() const { return {parts_.data(), used_}; }
  std::size_t memoryBytes() const;

 private:
  std::vector<Part> parts_;  ///< as many as there ever were, because of their marks
  std::size_t used_ = 0;
};

}  // namespace lbvh
