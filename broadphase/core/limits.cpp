// SPDX-License-Identifier: Zlib
#include "broadphase/core/limits.h"

#include <stdexcept>
#include <string>

#include "broadphase/core/sparse_bits.h"

namespace lbvh {

void requireFitting(View<const Aabb> boxes, View<const Filter> filters,
                    View<const std::uint64_t> changed) {
  // A tree over n boxes has 2 n - 1 nodes, whose indices have 31 bits.
  constexpr std::size_t kMaxBoxes = std::size_t{1} << 30;
  if (boxes.size() > kMaxBoxes)
    throw std::length_error(std::to_string(boxes.size()) + " boxes, at most 2^30 are possible");
  if (!filters.empty() && filters.size() != boxes.size())
    throw std::invalid_argument(std::to_string(filters.size()) + " filters for " +
                                std::to_string(boxes.size()) + " boxes");
  const std::size_t words = wordsFor(boxes.size());
  if (changed.data() != nullptr && changed.size() < words)
    throw std::invalid_argument("`changed` has " + std::to_string(changed.size()) + " words, but " +
                                std::to_string(boxes.size()) + " boxes need " +
                                std::to_string(words));
}

void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs) {
  if (pairs <= maxPairs) return;
  throw std::length_error("more than " + std::to_string(maxPairs) +
                          " overlapping pairs (Options::maxPairs)");
}

std::size_t requireCountable(std::uint64_t pairs) {
  if (pairs > kMaxCountable)
    throw std::length_error("a list of " + std::to_string(pairs) +
                            " elements, at most 2^31 - 1 are possible");
  return static_cast<std::size_t>(pairs);
}

}  // namespace lbvh
