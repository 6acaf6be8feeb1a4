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

  // Whether the boxes are put in order anew. Any order gives the same pairs, so the last one is
  // kept as long as it is of use.
  bool sorts = true;
  std::size_t ordered = 0;        ///< boxes in order, padding included; 0: none
  std::uint64_t orderedOf = 0;    ///< those that were handed in
  std::uint64_t extentsThen = 0;  ///< in the step that sorted
  std::uint64_t looksThen = 0;
  bool isWorn = false;

  /// What is known before the first step. Eight pairs a box: growing costs a second run.
  /// @param boxes padding included; of which `handedIn` are no padding
  void begin(std::size_t boxes, std::uint64_t handedIn, std::size_t oldPairs) {
    // Boxes that the order does not know lie together in its last blocks, wherever they are.
    sorts = isWorn || ordered != boxes || handedIn > orderedOf + orderedOf / 256 + 32;
    ordered = 0;  // until the step has succeeded
    if (sorts) orderedOf = handedIn;
    if (pairs == 0) setPairs(oldPairs == 0 ? 8 * std::uint64_t{boxes} : oldPairs);
  }

  /// Beyond this nothing is searched: that would take far longer than to sort.
  std::uint64_t mostExtents() const { return sorts ? ~std::uint64_t{0} : 2 * extentsThen + 65536; }

  bool covers(const StepHeader& step) const {
    if (sorts && bits != step.grid.bits) return false;
    return step.extents <= mostExtents() && step.pairs <= pairs;
  }

  /// If not, the lists are copied, see CudaPipeline.
  bool lists(const DeltaCount& delta) const {
    return delta.added <= listed && delta.removed <= listed;
  }

  /// Grows until it covers the step, and shrinks where it is far too large.
  void adaptTo(const StepHeader& step) {
    isWorn = step.extents > mostExtents() || bits != step.grid.bits;
    if (sorts)
      looksThen = step.looks, extentsThen = step.extents;
    else
      isWorn |= 5 * step.looks > 6 * looksThen;
    bits = step.grid.bits;
    const std::uint64_t generous = step.pairs + step.pairs / 8 + 1024;
    if (pairs < step.pairs || pairs > 2 * generous) setPairs(generous);
    // In a first step all pairs are new. Others may be followed by their like.
    if (step.arguments.oldPairs > 0)
      setListed(std::bit_ceil(std::max(step.delta.added, step.delta.removed)));
  }

  /// Before the step runs again.
  void retry(const StepHeader& step) {
    adaptTo(step);
    sorts |= isWorn;
  }
  void succeeded(std::size_t boxes) { ordered = boxes; }

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
