// SPDX-License-Identifier: Zlib
// Checks that the sizes of a step's arrays are within the library's limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// @throws std::length_error, std::invalid_argument as PairFinder::update() does
void requireFitting(View<const Aabb> boxes, View<const Filter> filters,
                    View<const std::uint64_t> changed = {});

/// @throws std::length_error if `pairs` is larger than `maxPairs`
void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs);

/// Maximum length of a list on a GPU. DevicePairFinder has the same limit on the host.
inline constexpr std::size_t kMaxCountable = (std::size_t{1} << 31) - 1;

/// @return `pairs`
/// @throws std::length_error if it is larger than kMaxCountable
std::size_t requireCountable(std::uint64_t pairs);

}  // namespace lbvh
