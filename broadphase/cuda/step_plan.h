// SPDX-License-Identifier: Zlib
// Plans a step on a GPU before its counts are known: whether to sort, and how large the launches
// are. A plan does not change results. If it does not fit, the step runs a second time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "broadphase/core/step_header.h"

namespace lbvh {

/// Decides whether a step sorts its boxes again. The pairs do not depend on the order. So the
/// previous order is kept, without a sort, as long as it is useful.
class OrderPlan {
 public:
  bool mayKeep = true;

  bool sorts() const { return sorts_; }

  /// @param boxes number of boxes with padding
  /// @param handedIn number of boxes without padding
  void begin(std::size_t boxes, std::uint64_t handedIn) {
    // Many new boxes make the order worse: wherever they are in space, they are packed together
    // into its last blocks.
    const bool hasGrown = handedIn > handedIn_ + handedIn_ / 256 + 32;
    sorts_ = !mayKeep || isWorn_ || boxes != ordered_ || hasGrown;
    ordered_ = 0;  // set again when the step succeeds
    asked_ = handedIn;
  }

  /// If a step keeps the order, the sum of its blocks' extents (StepHeader::extents) must not
  /// exceed this. A search with larger extents would take far longer than a sort.
  std::uint64_t mostExtents() const { return sorts_ ? ~std::uint64_t{0} : 2 * extents_ + 65536; }

  bool covers(const StepHeader& step) const { return step.extents <= mostExtents(); }

  /// Evaluates the step that has just run, and decides whether its order is good enough for the
  /// next.
  void observe(const StepHeader& step, bool changesCodes) {
    isWorn_ = changesCodes || !covers(step);
    if (sorts_) {
      extents_ = step.extents;
      tests_ = step.tests;
    } else {
      isWorn_ |= 5 * step.tests > 6 * tests_ + 1024;  // 1024 is added because a small sample varies
    }
  }

  /// Lets the step sort if its order was too bad. Must be called before the step runs again.
  void retry() { sorts_ |= isWorn_; }

  void succeed(std::size_t boxes) {
    ordered_ = boxes;
    if (sorts_) handedIn_ = asked_;
  }

 private:
  bool sorts_ = true;
  bool isWorn_ = false;
  std::size_t ordered_ = 0;     ///< number of sorted boxes, padding included; 0: none
  std::uint64_t handedIn_ = 0;  ///< number of boxes without padding at the last sort
  std::uint64_t asked_ = 0;     ///< number of boxes without padding in this step
  std::uint64_t extents_ = 0;
  std::uint64_t tests_ = 0;
};

/// Decides whether a step searches only for the pairs of changed boxes, and keeps the previous
/// pairs of all other boxes.
class FewPlan {
 public:
  /// @param changed number of changed boxes
  bool searchesFew(std::size_t changed, std::size_t boxes) {
    if (resting_ > 0) {
      --resting_;
      return false;
    }
    return kBoxesPerChanged * changed <= boxes;
  }

  /// Makes the next steps search for the pairs of all boxes. Must be called if a step for the
  /// changed boxes had too many pairs or too wide blocks, because such steps usually follow each
  /// other.
  void fellShort() {
    resting_ = pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  void succeed() { pause_ = 1; }

 private:
  /// At most an eighth of the boxes may have changed. In the counts of the PTX interpreter
  /// (tests/ptxvm), such a step costs half as much as a step for all boxes.
  static constexpr std::size_t kBoxesPerChanged = 8;
  static constexpr int kLongestPause = 64;

  int resting_ = 0,  ///< number of further steps that search for the pairs of all boxes
      pause_ = 1;    ///< value of `resting_` after the next failure
};

/// The sizes of the launches: what the previous step needed, plus a margin.
struct StepPlan {
  static constexpr std::size_t kMinListed = 1024;

  /// A step with more pairs fails, so no plan has more.
  std::uint64_t mostPairs = 0;
  std::size_t mostListed = kMinListed;

  int bits = 10;
  std::size_t pairs = 0;
  /// Capacity of each of two lists in mapped memory, for added and for removed pairs.
  std::size_t listed = 0;

  OrderPlan order;

  /// Begins a step. The first plan has the capacity for `oldPairs` or, without old pairs, for eight
  /// pairs per box. A smaller plan might have to grow, which costs a second run.
  /// @param boxes number of boxes with padding
  /// @param handedIn number of boxes without padding
  void begin(std::size_t boxes, std::uint64_t handedIn, std::size_t oldPairs) {
    order.begin(boxes, handedIn);
    if (pairs == 0) setPairs(oldPairs == 0 ? 8 * std::uint64_t{boxes} : oldPairs);
  }

  bool covers(const StepHeader& step) const {
    return (bits == step.grid.bits || !order.sorts()) && order.covers(step) && step.pairs <= pairs;
  }

  /// Whether the changes fit into the two lists. If not, CudaPipeline copies the changes.
  bool lists(const DeltaCount& delta) const {
    return delta.added <= listed && delta.removed <= listed;
  }

  /// Grows to cover the step, and shrinks if the plan is far too large.
  void adaptTo(const StepHeader& step) {
    const bool wasSearched = order.covers(step);
    order.observe(step, bits != step.grid.bits);
    bits = step.grid.bits;
    if (!wasSearched) return;
    const std::uint64_t generous = step.pairs + step.pairs / 8 + 1024;
    if (pairs < step.pairs || pairs > 2 * generous) setPairs(generous);
    // In a first step all pairs are new, so its changes are ignored. After any other step, the next
    // one may have as many changes.
    if (step.arguments.oldPairs > 0)
      setListed(std::bit_ceil(std::max(step.delta.added, step.delta.removed)));
  }

  /// Adapts the plan before the step runs again.
  void retry(const StepHeader& step) {
    adaptTo(step);
    order.retry();
  }

  /// The maximum number of pairs in each list, so that both lists take at most `bytes`. The lists
  /// grow by doubling, and old memory that is not freed yet is included. The result is at least
  /// kMinListed.
  static std::size_t listedIn(std::size_t bytes) {
    return std::max(kMinListed, std::bit_floor(bytes / (5 * sizeof(Pair))));
  }
  /// The maximum number of pairs in a copy of all pairs, so that its memory takes at most `bytes`.
  /// The memory grows by doubling, and old memory that is not freed yet is included.
  static std::size_t lockedIn(std::size_t bytes) { return bytes / (4 * sizeof(Pair)); }

 private:
  /// Sets both capacities. Assumes that a step adds or removes at most an eighth of the pairs.
  void setPairs(std::uint64_t planned) {
    pairs = static_cast<std::size_t>(std::min(planned, mostPairs));
    setListed(std::bit_floor(std::uint64_t{pairs / 8}));
  }
  /// @param planned a power of two, so that the capacity rarely changes
  void setListed(std::uint64_t planned) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(planned, mostListed));
    listed = std::max({listed, most, kMinListed});
  }
};

}  // namespace lbvh
