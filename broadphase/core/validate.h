// SPDX-License-Identifier: Zlib
// What must hold after each stage, checked in debug builds and by the tests. Slow and plain on
// purpose. Each function returns an empty string, or one line that names what is wrong. Host only.
#pragma once

#include <string>

#include "broadphase/types.h"

namespace lbvh {

/// A right tree reaches every leaf once; its bounds are tight; its ropes lead to where a traversal
/// with a stack would go on; and it is numbered by THE INDEX RULE.
std::string whyTreeIsWrong(View<const Node> nodes, View<const Aabb> boxes);

/// Right pairs are sorted, unique, within range, overlap and should collide. Whether any is missing
/// is checked for a sample of the boxes.
std::string whyPairsAreWrong(View<const Pair> pairs, View<const Aabb> boxes,
                             View<const Filter> filters);

/// The right delta, applied to the old pairs, gives the new ones.
std::string whyDeltaIsWrong(View<const Pair> oldPairs, View<const Pair> newPairs,
                            View<const Pair> added, View<const Pair> removed,
                            View<const std::uint8_t> removedObjects);

}  // namespace lbvh
