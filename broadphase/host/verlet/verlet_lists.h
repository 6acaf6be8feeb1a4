// SPDX-License-Identifier: Zlib
// Verlet lists: for each box, the boxes that it can overlap before it has moved far (Verlet 1967,
// "Computer 'experiments' on classical fluids"). Keeps the grown boxes (skin.h), the candidates
// (candidates.h) and the reaches (reaches.h) from step to step, and knows whether they are valid.
// Does not search: the step searches between plan() and a call that ends the step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/host/block_tree.h"
#include "broadphase/host/verlet/candidates.h"
#include "broadphase/host/verlet/reaches.h"
#include "broadphase/host/verlet/skin.h"

namespace lbvh {

class VerletLists {
 public:
  using Plan = Skin::Plan;

  VerletLists(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), skin_(tasks, reaches_), candidates_(tasks, kernels) {}

  /// Begins a step: decides what it searches for, and updates the grown boxes. Until endAll() or
  /// endEscaped(), no later step can use the lists, so a step may fail at any point.
  Plan plan(const StepInput& input);
  /// Grows the boxes for a step that changes from Plan::escaped, which has failed, to Plan::all.
  void growAll(const StepInput& input);
  /// The given input, with grown boxes.
  StepInput grown(const StepInput& input) const { return skin_.grown(input); }

  /// Ends a plain step.
  /// @param tests number of tests of the step's search
  void endPlain(std::size_t boxes, std::uint64_t tests) { skin_.endPlain(boxes, tests); }

  // A step with Plan::all searches for the pairs of all grown boxes, and calls adopt() and
  // endAll(). If the search needs more than mostTests() or too much memory, the step calls
  // turnOff(), and continues as a step with Plan::plain.
  std::uint64_t mostTests(std::size_t boxes) const { return skin_.mostTests(boxes); }
  /// Copies the candidates from the full lists of all grown boxes. Then reduces the list of each
  /// box to its pairs: the boxes of greater index that overlap the box.
  /// @param stats has the number of oversized and NaN boxes
  void adopt(const StepInput& input, NeighbourLists lists, const StepStats& stats,
             const StepWork& work);
  void endAll();
  void turnOff() { skin_.turnOff(); }

  // A step with Plan::escaped searches for the pairs of the grown boxes of escapedIds(). If
  // hasChanges(), the step calls compare() and commit(). At its end it calls endEscaped().
  View<const std::uint32_t> escapedIds() const { return skin_.escapedIds(); }
  bool hasChanges() const { return skin_.changes() != 0; }
  /// Finds the changes of the pairs. Only commit() makes them final.
  /// @param lists for each escaped box, all boxes that its grown box overlaps; the call replaces
  ///   them with the lists that commit() needs
  /// @param all the blocks of all grown boxes
  /// @return false if the step must search for the pairs of all boxes
  bool compare(const StepInput& input, NeighbourLists lists, const PackedBoxes& all,
               StepWork& work);
  /// The changes, unsorted, in the format of words().
  View<std::uint64_t> changes() { return candidates_.changes(); }
  PairWords words() const { return candidates_.words(); }
  std::size_t pairsAfter() const { return candidates_.pairsAfter(); }
  void commit(const StepInput& input, const NeighbourLists& lists);
  /// Writes the number of oversized and NaN boxes to `stats`.
  void endEscaped(const StepInput& input, StepStats& stats, StepWork& work);

  /// Whether the previous step searched for the pairs of all grown boxes. Valid after plan().
  bool wereAllFound() const { return before_ == State::found; }

  /// The input of the last step, with grown boxes; empty if no step can use the lists.
  StepInput last() const { return state_ == State::unknown ? StepInput{} : skin_.grown(); }
  /// Makes the next step search for the pairs of all boxes.
  void invalidate() { state_ = State::unknown; }
  /// Frees the memory of the candidates. After that, the last step's pairs are unknown.
  void forget() { candidates_.forget(); }

  // The pairs of the last step, unless forget() has been called since.
  std::size_t pairs() const { return candidates_.pairs(); }
  std::size_t boxes() const { return candidates_.boxes(); }
  /// Number of indices that writeLists() needs.
  std::size_t capacityForLists() const { return candidates_.capacityForLists(); }
  /// Writes for each box the boxes of greater index that it overlaps.
  void writeLists(NeighbourLists lists) const { candidates_.writeLists(lists); }

  std::size_t memoryBytes() const {
    return skin_.memoryBytes() + reaches_.memoryBytes() + candidates_.memoryBytes();
  }

 private:
  enum class State {
    unknown,  ///< the step has not ended, has failed or was plain, or its pairs were replaced
    found,    ///< the step has found the candidates by a search for the pairs of all grown boxes
    kept      ///< the step has updated the candidates of a few boxes
  };

  BoxChanges changesOf(const StepInput& input) const;
  void findFormerOfHubs(const BoxChanges& changes, const PackedBoxes& all);

  HostTasks& tasks_;
  Reaches reaches_;
  Skin skin_;
  Candidates candidates_;
  State state_ = State::unknown;
  State before_ = State::unknown;  ///< state_ before the current step
};

}  // namespace lbvh
