// SPDX-License-Identifier: Zlib
// The limits of a step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// @throws std::length_error, std::invalid_argument as PairFinder::update
void requireFitting(View<const Aabb> boxes, View<const Filter> filters);

/// @throws std::length_error if there are more
void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs);

/// What a GPU's kernels can count; DevicePairFinder has the same limit on the host.
inline constexpr std::size_t kMostCountable = (std::size_t{1} << 31) - 1;

/// @throws std::length_error if room for so many pairs is more than can be counted
std::size_t requireCountable(std::uint64_t pairs);

}  // namespace lbvh
