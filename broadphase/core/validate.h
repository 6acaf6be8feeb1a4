// SPDX-License-Identifier: Zlib
// Checks the results of steps, in checked builds and in tests. Slow and simple on purpose.
// Functions named why... return an empty string, or one line that says what is wrong. Host only.
#pragma once

#include <string>

#include "broadphase/core/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

#if defined(GPULBVH_CHECKED)
inline constexpr bool kValidate = true;  ///< whether steps check their results
#else
inline constexpr bool kValidate = false;
#endif

/// Checks that pairs are sorted and unique, and that each one is valid, overlaps and should
/// collide. Looks for missing pairs of only a sample of the boxes.
std::string whyPairsAreWrong(View<const Pair> pairs, View<const Aabb> boxes,
                             View<const Filter> filters);

/// Checks that the delta turns the old pairs into the new ones. Ignores old pairs of removed
/// objects.
std::string whyDeltaIsWrong(View<const Pair> oldPairs, View<const Pair> newPairs,
                            View<const Pair> added, View<const Pair> removed,
                            View<const std::uint8_t> removedObjects);

/// Checks the result of a step on the host. If it is wrong, prints why and aborts, because that is
/// a bug in this library. Skips the check if memory for it runs out.
void checkStep(const StepInput& input, View<const Pair> oldPairs, View<const Pair> newPairs,
               View<const Pair> added, View<const Pair> removed);

}  // namespace lbvh
