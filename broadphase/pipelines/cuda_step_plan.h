// How large the launches of a step are, where the host does not know the counts in advance: what
// the last step needed and some more. Decides nothing about results: a plan that was too small
// costs a second run.
#pragma once

#include <algorithm>
#include <cstddef>

#include "broadphase/stages/step_header.h"

namespace lbvh {

struct StepPlan {
  int bits = 10;
  std::size_t pairs = 0, added = 0, removed = 0;

  bool covers(const StepHeader& step) const {
    return bits == step.grid.bits && step.pairs <= pairs && step.delta.added <= added &&
           step.delta.removed <= removed;
  }

  /// Grows until it covers the step, and shrinks where it is far too large.
  void adaptTo(const StepHeader& step) {
    bits = step.grid.bits;
    adapt(pairs, step.pairs, 0);
    // Kernels write only real pairs to these lists, so their room is cheap.
    adapt(added, step.delta.added, pairs / 4);
    adapt(removed, step.delta.removed, pairs / 4);
  }

 private:
  static void adapt(std::size_t& planned, std::uint64_t needed, std::size_t least) {
    const auto n = static_cast<std::size_t>(needed);
    const std::size_t generous = std::max(n + n / 8 + 1024, least);
    if (planned < n || planned < least || planned > 2 * generous) planned = generous;
  }
};

}  // namespace lbvh
