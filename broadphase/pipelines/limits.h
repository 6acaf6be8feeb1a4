// SPDX-License-Identifier: Zlib
// The limits of a step that its caller sets.
#pragma once

#include <cstdint>

#include "broadphase/types.h"

namespace lbvh {

/// @throws std::length_error, std::invalid_argument as PairFinder::update
void requireFitting(View<const Aabb> boxes, View<const Filter> filters);

/// @throws std::length_error if there are more
void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs);

}  // namespace lbvh
