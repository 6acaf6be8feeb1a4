// What must hold after each stage, checked in debug builds and by the tests. Slow and plain on
// purpose; each function returns an empty string or one line naming what is wrong. Host only.
#pragma once

#include <string>

#include "broadphase/types.h"

namespace lbvh {

/// Every leaf reached exactly once, children inside their parents and bounds tight, ropes lead to
/// where a traversal with a stack would go on, numbering as THE INDEX RULE says.
std::string whyTreeIsWrong(View<const Node> nodes, View<const Aabb> boxes);

/// Sorted, unique, within range, overlapping, wanted; and complete for a sample of the boxes.
std::string whyPairsAreWrong(View<const Pair> pairs, View<const Aabb> boxes,
                             View<const Filter> filters);

/// added and removed, applied to the old pairs, give the new ones.
std::string whyDeltaIsWrong(View<const Pair> oldPairs, View<const Pair> newPairs,
                            View<const Pair> added, View<const Pair> removed,
                            View<const std::uint8_t> removedObjects);

}  // namespace lbvh
