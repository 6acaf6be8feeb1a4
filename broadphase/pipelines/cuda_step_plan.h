// How large a step is launched in a space that does not know its counts in advance (exec/space.h):
// what the last step needed and some more. Decides nothing about results: a plan that fell short
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

  /// Makes it cover the step, and drops what is much more than that.
  void adaptTo(const StepHeader& step) {
    bits = step.grid.bits;
    adapt(pairs, step.pairs, 0);
    // The lists are written only as far as they go, so room for them is cheap.
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
