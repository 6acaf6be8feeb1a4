// SPDX-License-Identifier: Zlib
// Decides whether a skin (skin.h) is worth its cost. Counts and weighs the work of steps, and
// compares it with the work of plain steps. Plain steps search for the pairs of all boxes without a
// skin. Reads no clock, so that the choice is the same in every run. Decides nothing about single
// boxes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbvh {

/// The work of a step with a skin.
struct StepWork {
  std::uint64_t tests = 0;     ///< tests of a box against a block (blocks.h)
  std::uint64_t ordered = 0;   ///< boxes that were ordered along the curve
  std::uint64_t tested = 0;    ///< candidates that were tested for overlap
  std::uint64_t compared = 0;  ///< previous and new candidates of escaped boxes
  std::uint64_t edited = 0;    ///< edited entries in the rows of other boxes
};

class SkinAccount {
 public:
  /// Starts a new account. Must be called when the skin is turned on.
  void open();

  /// Must be called after a plain step.
  void notePlain(std::size_t boxes, std::uint64_t tests);
  /// Charges a step that searched for all grown boxes.
  /// @param found number of candidates
  void chargeAll(std::size_t boxes, std::uint64_t found, const StepWork& work);
  /// Charges a step that searched for the escaped boxes.
  void chargeEscaped(std::size_t escaped, const StepWork& work);

  /// Whether a search for the escaped boxes is cheap enough.
  /// @param escaped number of escaped boxes
  /// @param changed number of boxes that have changed or escaped
  /// @param ofHubs number of candidates of escaped hubs
  bool allowsEscaped(std::size_t escaped, std::size_t changed, std::size_t ofHubs) const;
  /// Whether a search for all grown boxes is cheap enough.
  bool allowsAll() const { return debt_ + all_ - 1 <= kMaxDebt; }
  /// Maximum number of tests of a search for all grown boxes. After that many tests the search
  /// stops, and the step becomes a plain one. The stopped search and the plain search together
  /// take about 3.5 times the tests of a plain step.
  std::uint64_t mostTests(std::size_t boxes) const;
  /// Whether the skin has cost too much, and should be turned off.
  bool isOverdrawn() const { return debt_ > kMaxDebt; }

 private:
  // Measured times, relative to a test of a box against a block.
  static constexpr double kOrdering = 3;  ///< per box
  static constexpr double kListing = 3;   ///< per box, to sort and compare its pairs
  /// Per box in a plain step: to compare its pairs by rank, and to order the boxes occasionally.
  static constexpr double kPlain = 4;
  /// Tests of a search that finds each pair twice, relative to a search by rank.
  static constexpr double kBothSides = 1.7;
  static constexpr double kGrowing = 8;     ///< per box, to grow it and to store it
  static constexpr double kAdopting = 1.2;  ///< per candidate
  static constexpr double kTesting = 0.4;   ///< per candidate
  static constexpr double kEscaping = 20;   ///< per escaped box
  static constexpr double kComparing = 2;   ///< per candidate
  static constexpr double kEditing = 5;     ///< per candidate

  // Costs relative to a plain step. For any sequence of steps, the extra cost is at most the
  // growth of the debt.
  static constexpr double kMaxDebt = 4.5, kMaxCredit = 1.5;
  static constexpr double kMaxOfEscaped = 2;      ///< for a step that searches for escaped boxes
  static constexpr double kMaxOfAll = 4.5;        ///< for a step that searches for all grown boxes
  static constexpr double kMaxTestsOfAll = 1.45;  ///< below 1.5: a search stops only between blocks

  void charge(double work);

  double plainTests_ = 0;  ///< tests per box in the last plain step; 0: unknown
  double plain_ = 0;       ///< work of a plain step
  double all_ = 0;         ///< cost of the last search of all grown boxes, relative to a plain step
  double row_ = 0;         ///< mean number of candidates of a box
  double perEscaped_ = 0;  ///< work per escaped box, in the last step that had many
  std::size_t boxes_ = 0;
  double debt_ = 0;  ///< extra cost compared with plain steps, in units of a plain step
};

}  // namespace lbvh
