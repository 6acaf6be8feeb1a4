// SPDX-License-Identifier: Zlib
// How large the launches of a step are, where the host does not know the counts in advance: what
// the last step needed and some more. Decides nothing about results: a plan that was too small
// costs a second run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/cuda/order_plan.h"

namespace lbvh {

struct StepPlan {
  static constexpr std::size_t kLeastListed = 1024;

  /// Beyond them a step fails, before it is planned for.
  std::uint64_t mostPairs = 0;
  std::size_t mostListed = kLeastListed;

  int bits = 10;
  std::size_t pairs = 0;
  std::size_t listed = 0;  ///< added pairs in mapped memory, and removed ones: as many of each

  OrderPlan order;

  /// What is known before the first step. Eight pairs a box: growing costs a second run.
  /// @param boxes padding included, of which `handedIn` are none
  void begin(std::size_t boxes, std::uint64_t handedIn, std::size_t oldPairs) {
    order.begin(boxes, handedIn);
    if (pairs == 0) setPairs(oldPairs == 0 ? 8 * std::uint64_t{boxes} : oldPairs);
  }

  bool covers(const StepHeader& step) const {
    return (bits == step.grid.bits || !order.sorts()) && order.covers(step) && step.pairs <= pairs;
  }

  /// If not, the lists are copied, see CudaPipeline.
  bool lists(const DeltaCount& delta) const {
    return delta.added <= listed && delta.removed <= listed;
  }

  /// Grows until it covers the step, and shrinks where it is far too large.
  void adaptTo(const StepHeader& step) {
    const bool wasSearched = order.covers(step);
    order.observe(step, bits != step.grid.bits);
    bits = step.grid.bits;
    if (!wasSearched) return;
    const std::uint64_t generous = step.pairs + step.pairs / 8 + 1024;
    if (pairs < step.pairs || pairs > 2 * generous) setPairs(generous);
    // In a first step all pairs are new. Others may be followed by their like.
    if (step.arguments.oldPairs > 0)
      setListed(std::bit_ceil(std::max(step.delta.added, step.delta.removed)));
  }

  /// Before the step runs again.
  void retry(const StepHeader& step) {
    adaptTo(step);
    order.retry();
  }

  /// How many pairs a list may have so that both, growing by doubling, hold no more than `bytes`,
  /// what waits to be freed included.
  static std::size_t listedIn(std::size_t bytes) {
    return std::max(kLeastListed, std::bit_floor(bytes / (5 * sizeof(Pair))));
  }

 private:
  /// About a quarter of them is expected to come or go in a step.
  void setPairs(std::uint64_t planned) {
    pairs = static_cast<std::size_t>(std::min(planned, mostPairs));
    setListed(std::bit_floor(std::uint64_t{pairs / 4}));
  }
  /// Powers of two, which seldom change.
  void setListed(std::uint64_t planned) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(planned, mostListed));
    listed = std::max({listed, most, kLeastListed});
  }
};

}  // namespace lbvh
