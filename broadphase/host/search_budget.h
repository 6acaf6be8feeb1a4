// SPDX-License-Identifier: Zlib
// Decides how long boxes keep their order while some of them move. A box that has moved far makes
// its block wide, so that searches open more blocks. Once the extra tests have cost about as much
// as a new order, the boxes are ordered again. Costs are counted in tests of a box against a block,
// so that the choice is the same in every run. This code neither searches nor orders boxes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lbvh {

/// The budget for searches for the pairs of a few boxes.
class SearchBudget {
 public:
  /// Must be called after a search for the pairs of all boxes in a new order.
  void begin(std::size_t boxes, std::uint64_t tests) {
    boxes_ = boxes;
    tests_ = tests;
    beginAgain(0);
  }
  /// Must be called after a search for the pairs of a few boxes in a new order. Later searches may
  /// need at least as many tests, because another new order would not make them cheaper.
  void beginAgain(std::uint64_t tests) {
    fresh_ = tests;
    spent_ = 0;
  }

  /// Maximum number of tests of a search for the pairs of `boxes` boxes. With more, the extra
  /// tests since the last order would cost more than a new order.
  std::uint64_t mostTests(std::size_t boxes) const {
    const std::uint64_t all = tests_ / kOrdersOfSearch;
    return usual(boxes) + (all - std::min(all, spent_));
  }
  /// Must be called after a search that stayed within mostTests().
  void spend(std::size_t boxes, std::uint64_t tests) {
    spent_ += tests - std::min(tests, usual(boxes));
  }

 private:
  static constexpr std::uint64_t kOrdersOfSearch = 4;  ///< ordering costs a quarter of a search

  std::uint64_t usual(std::size_t boxes) const {
    const std::uint64_t each = boxes_ == 0 ? 0 : (tests_ + boxes_ - 1) / boxes_;
    return std::max(each * boxes, fresh_);
  }

  std::size_t boxes_ = 0;
  std::uint64_t tests_ = 0;  ///< tests of the search for the pairs of all boxes
  std::uint64_t fresh_ = 0;  ///< tests of the search for a few boxes' pairs in a new order
  std::uint64_t spent_ = 0;  ///< tests beyond the usual number
};

/// The budget for searches for the pairs of all boxes, by rank. A new order costs a sort of the
/// boxes, and a sort of the pairs by the new ranks. If boxes move far in each step, no order can be
/// kept. Then a step tries to keep the order only after a pause, which becomes longer each time.
class RankBudget {
 public:
  /// Must be called when the boxes get a new order. The next search has no limit.
  void forget() { ranks_ = 0; }

  /// Whether a step may keep the order. Counts down the pause, so it must be called only once per
  /// step.
  bool mayKeep() {
    if (wait_ == 0) return !isSpent();
    --wait_;
    return false;
  }
  /// Maximum number of tests of a search in the same order, to which boxes may have been added.
  std::uint64_t mostTests(std::size_t ranks) const {
    const std::uint64_t usual = usually(ranks);
    return ranks_ == 0 ? ~std::uint64_t{0} : usual + usual / 2;
  }
  /// Must be called after a search that was stopped.
  void stopped() {
    pause_ = std::min(2 * pause_ + 1, kMaxPause);
    wait_ = pause_;
  }
  /// Must be called after a search that was not stopped.
  /// @return whether the order was new
  bool spend(std::size_t ranks, std::uint64_t tests) {
    if (ranks_ == 0) {
      ranks_ = ranks;
      tests_ = tests;
      spent_ = 0;
      return true;
    }
    spent_ += tests - std::min(tests, usually(ranks));
    pause_ = 0;
    return false;
  }

 private:
  static constexpr unsigned kMaxPause = 63;  ///< steps

  /// Whether a new order is worth its cost. Ordering a box costs as much as a test. Sorting all
  /// pairs by new ranks costs about half of a search.
  bool isSpent() const { return spent_ > tests_ / 2 + ranks_; }

  std::uint64_t usually(std::size_t ranks) const {
    return ranks <= ranks_ || ranks_ == 0 ? tests_ : tests_ + tests_ / ranks_ * (ranks - ranks_);
  }

  std::size_t ranks_ = 0;  ///< 0: the order is new
  std::uint64_t tests_ = 0;
  std::uint64_t spent_ = 0;
  unsigned wait_ = 0, pause_ = 0;
};

}  // namespace lbvh
