// SPDX-License-Identifier: Zlib
// Whether a skin (skin.h) pays. What steps do is counted, weighed, and compared with a plain step:
// a search of all boxes without a skin. So the choice is the same in every run. Decides nothing
// about boxes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbvh {

/// What a step with a skin has done.
struct StepWork {
  std::uint64_t tests = 0;     ///< of a box against a block (find_neighbours.h)
  std::uint64_t ordered = 0;   ///< boxes that were put in order along the curve
  std::uint64_t tested = 0;    ///< candidates whose overlap was tested
  std::uint64_t compared = 0;  ///< candidates of boxes that have left, before and after
  std::uint64_t edited = 0;    ///< candidates of other boxes
};

class SkinAccount {
 public:
  /// The skin is turned on.
  void open();

  /// After a plain step.
  void notePlain(std::size_t boxes, std::uint64_t tests);
  /// After a search of all boxes.
  /// @param found all candidates
  void chargeAll(std::size_t boxes, std::uint64_t found, const StepWork& work);
  /// After a step that searched for those that have left.
  void chargeLeft(std::size_t left, const StepWork& work);

  /// Before a step: whether it is cheap enough to search for those that have left, or for all.
  /// @param ofHubs candidates of hubs among those that have left
  bool allowsLeft(std::size_t left, std::size_t changed, std::size_t ofHubs) const;
  bool allowsAll() const { return debt_ + all_ - 1 <= kMostDebt; }
  /// After so many tests of grown boxes, a search of all is to stop, and the step to become a plain
  /// one: together they test at most 2.5 times as much as that.
  std::uint64_t mostTests(std::size_t boxes) const;
  /// Whether the skin has cost too much, and should be turned off.
  bool isOverdrawn() const { return debt_ > kMostDebt; }

 private:
  // Times, in tests of a box against a block: measured.
  static constexpr double kOrdering = 3;    ///< a box
  static constexpr double kListing = 3;     ///< a box: its pairs are sorted and compared
  static constexpr double kGrowing = 8;     ///< a box, and what else it costs that it is kept
  static constexpr double kAdopting = 1.2;  ///< a candidate
  static constexpr double kTesting = 0.4;   ///< a candidate
  static constexpr double kLeaving = 20;    ///< a box
  static constexpr double kComparing = 2;   ///< a candidate
  static constexpr double kEditing = 5;     ///< a candidate

  // In plain steps. Any ten steps cost at most so much more than ten plain ones as the debt can
  // grow in them.
  static constexpr double kMostDebt = 3, kMostCredit = 1;
  static constexpr double kMostOfLeft = 1.4;  ///< a step that searches for those that have left
  static constexpr double kMostOfAll = 3;     ///< what is charged
  static constexpr double kMostTestsOfAll = 1.45;  ///< a search is stopped between blocks

  void charge(double work);

  double plainTests_ = 0;  ///< for a box, in the last plain step; 0: none is known
  double plain_ = 0;       ///< the work of a plain step of all boxes
  double all_ = 0;         ///< what the last search of all has cost, in plain steps
  double row_ = 0;         ///< candidates of a box, in the mean
  double left_ = 0;        ///< work for a box that has left, in the last step that had many
  std::size_t boxes_ = 0;
  double debt_ = 0;  ///< what the steps have cost more than plain ones
};

}  // namespace lbvh
