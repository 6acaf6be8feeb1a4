// SPDX-License-Identifier: Zlib
#include "broadphase/core/limits.h"

#include <stdexcept>
#include <string>

namespace lbvh {

void requireFitting(View<const Aabb> boxes, View<const Filter> filters) {
  constexpr std::size_t kMaxBoxes = std::size_t{1} << 30;  // node indices are 31 bits
  if (boxes.size > kMaxBoxes) throw std::length_error("more than 2^30 boxes");
  if (!filters.empty() && filters.size != boxes.size)
    throw std::invalid_argument("as many filters as boxes, or none");
}

void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs) {
  if (pairs <= maxPairs) return;
  throw std::length_error("more than " + std::to_string(maxPairs) +
                          " overlapping pairs (Options::maxPairs)");
}

std::size_t requireCountable(std::uint64_t pairs) {
  if (pairs > kMostCountable)
    throw std::length_error("room for more pairs than a GPU's kernels can count");
  return static_cast<std::size_t>(pairs);
}

}  // namespace lbvh
