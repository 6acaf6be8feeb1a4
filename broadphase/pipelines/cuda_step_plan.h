// How large the launches of a step are, where the host does not know the counts in advance: what
// the last step needed and some more. Decides nothing about results: a plan that was too small
// costs a second run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "broadphase/stages/step_header.h"

namespace lbvh {

struct StepPlan {
  static constexpr std::size_t kLeastListed = 1024;

  /// Beyond them a step fails, before it is planned for.
  std::uint64_t mostPairs = 0;
  std::size_t mostListed = kLeastListed;

  int bits = 10;
  std::size_t pairs = 0;
  std::size_t listed = 0;  ///< added pairs in mapped memory, and removed ones: as many of each

  /// What is known before the first step. Eight pairs a box: growing costs a second run.
  void begin(std::size_t boxes, std::size_t oldPairs) {
    if (pairs == 0) setPairs(oldPairs == 0 ? 8 * std::uint64_t{boxes} : oldPairs);
  }

  bool covers(const StepHeader& step) const {
    return bits == step.grid.bits && step.pairs <= pairs;
  }

  /// If not, the lists are copied, see CudaPipeline.
  bool lists(const DeltaCount& delta) const {
    return delta.added <= listed && delta.removed <= listed;
  }

  /// Grows until it covers the step, and shrinks where it is far too large.
  void adaptTo(const StepHeader& step) {
    bits = step.grid.bits;
    const std::uint64_t generous = step.pairs + step.pairs / 8 + 1024;
    if (pairs < step.pairs || pairs > 2 * generous) setPairs(generous);
  }

  /// How many pairs a list may have so that both, growing by doubling, hold no more than `bytes`,
  /// what waits to be freed included.
  static std::size_t listedIn(std::size_t bytes) {
    return std::max(kLeastListed, std::bit_floor(bytes / (5 * sizeof(Pair))));
  }

 private:
  /// At most a quarter of the pairs is expected to come or go in a step. A power of two, which
  /// seldom changes.
  void setPairs(std::uint64_t planned) {
    pairs = static_cast<std::size_t>(std::min(planned, mostPairs));
    listed = std::max(listed, std::clamp(std::bit_floor(pairs / 4), kLeastListed, mostListed));
  }
};

}  // namespace lbvh
