// SPDX-License-Identifier: Zlib
// Whether a step on a GPU puts its boxes in order anew. Any order gives the same pairs. So the last
// one is kept as long as it is of use, and nothing is sorted meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/core/step_header.h"

namespace lbvh {

class OrderPlan {
 public:
  bool mayKeep = true;

  bool sorts() const { return sorts_; }

  /// @param boxes padding included, of which `handedIn` are none
  void begin(std::size_t boxes, std::uint64_t handedIn) {
    // Boxes that the order does not know lie together in its last blocks, wherever they are.
    const bool hasGrown = handedIn > handedIn_ + handedIn_ / 256 + 32;
    sorts_ = !mayKeep || isWorn_ || boxes != ordered_ || hasGrown;
    ordered_ = 0;  // until the step has succeeded
    asked_ = handedIn;
  }

  /// A step that keeps the order must not search beyond this: it would take far longer than a sort.
  std::uint64_t mostExtents() const { return sorts_ ? ~std::uint64_t{0} : 2 * extents_ + 65536; }

  bool covers(const StepHeader& step) const { return step.extents <= mostExtents(); }

  /// Looks at a step that has run, and decides about the next one.
  void observe(const StepHeader& step, bool changesCodes) {
    isWorn_ = changesCodes || !covers(step);
    if (sorts_) {
      extents_ = step.extents;
      looks_ = step.looks;
    } else {
      isWorn_ |= 5 * step.looks > 6 * looks_ + 1024;  // a small sample varies
    }
  }

  /// The step runs again.
  void retry() { sorts_ |= isWorn_; }

  void succeed(std::size_t boxes) {
    ordered_ = boxes;
    if (sorts_) handedIn_ = asked_;
  }

 private:
  bool sorts_ = true;
  bool isWorn_ = false;
  std::size_t ordered_ = 0;     ///< boxes in order, padding included; 0: none
  std::uint64_t handedIn_ = 0;  ///< of them, when they were sorted
  std::uint64_t asked_ = 0;     ///< in this step
  std::uint64_t extents_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace lbvh
