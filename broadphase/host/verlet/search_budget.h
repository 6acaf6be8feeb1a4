// SPDX-License-Identifier: Zlib
// How long the boxes of a scene may keep their order while some move. Blocks that hold boxes which
// have gone far are wide, so more of them are opened. Once that has cost about as much as a new
// order would, the boxes are ordered again. Costs are counted in tests of a box against a block, so
// that the choice is the same in every run. Does not search, does not order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lbvh {

class SearchBudget {
 public:
  /// After a search of all boxes, just ordered.
  void begin(std::size_t boxes, std::uint64_t tests) {
    boxes_ = boxes;
    tests_ = tests;
    beginAgain(0);
  }
  /// After a search of a few boxes, with all just ordered: no order makes it cheaper.
  void beginAgain(std::uint64_t tests) {
    fresh_ = tests;
    spent_ = 0;
  }

  /// In a search of so many boxes.
  std::uint64_t mostTests(std::size_t boxes) const {
    const std::uint64_t all = tests_ / kOrdersOfSearch;
    return usual(boxes) + (all - std::min(all, spent_));
  }
  /// After it.
  void spend(std::size_t boxes, std::uint64_t tests) {
    spent_ += tests - std::min(tests, usual(boxes));
  }

 private:
  static constexpr std::uint64_t kOrdersOfSearch = 4;  ///< ordering costs a quarter of searching

  std::uint64_t usual(std::size_t boxes) const {
    const std::uint64_t each = boxes_ == 0 ? 0 : (tests_ + boxes_ - 1) / boxes_;
    return std::max(each * boxes, fresh_);
  }

  std::size_t boxes_ = 0;
  std::uint64_t tests_ = 0;  ///< when all of them were searched for
  std::uint64_t fresh_ = 0;
  std::uint64_t spent_ = 0;  ///< beyond what is usual
};

}  // namespace lbvh
