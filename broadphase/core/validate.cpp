// SPDX-License-Identifier: Zlib
#include "broadphase/core/validate.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <vector>

namespace lbvh {
namespace {

std::string text(Pair pair) {
  std::string out = std::to_string(pair.first);
  return out.append(", ").append(std::to_string(pair.second));
}

void check(const std::string& whyWrong) {
  if (whyWrong.empty()) return;
  std::fprintf(stderr, "GpuLbvhBroadphase: %s\n", whyWrong.c_str());
  std::abort();
}

bool isSortedAndUnique(View<const Pair> pairs) {
  for (std::size_t i = 1; i < pairs.size(); ++i)
    if (!(pairs[i - 1] < pairs[i])) return false;
  return true;
}

}  // namespace

std::string whyPairsAreWrong(View<const Pair> pairs, View<const Aabb> boxes,
                             View<const Filter> filters) {
  if (!isSortedAndUnique(pairs)) return "pairs are not sorted and unique";
  for (const Pair& pair : pairs) {
    if (pair.first >= pair.second || pair.second >= boxes.size())
      return "invalid pair " + text(pair);
    if (!overlap(boxes[pair.first], boxes[pair.second]))
      return "pair without overlap " + text(pair);
    if (!shouldCollide(filters, pair.first, pair.second))
      return "pair that should not collide " + text(pair);
  }
  const std::size_t samples = std::min<std::size_t>(boxes.size(), 16);
  for (std::size_t s = 0; s < samples; ++s) {
    const auto box = static_cast<std::uint32_t>(boxes.size() * s / samples);
    for (std::uint32_t other = 0; other < boxes.size(); ++other) {
      if (other == box || !overlap(boxes[box], boxes[other])) continue;
      if (!shouldCollide(filters, box, other)) continue;
      if (!std::binary_search(pairs.begin(), pairs.end(), makePair(box, other)))
        return "missing pair " + text(makePair(box, other));
    }
  }
  return {};
}

std::string whyDeltaIsWrong(View<const Pair> oldPairs, View<const Pair> newPairs,
                            View<const Pair> added, View<const Pair> removed,
                            View<const std::uint8_t> removedObjects) {
  std::vector<Pair> before;
  std::copy_if(oldPairs.begin(), oldPairs.end(), std::back_inserter(before),
               [&](Pair pair) { return !involvesRemoved(pair, removedObjects); });
  std::vector<Pair> expected;
  std::set_difference(newPairs.begin(), newPairs.end(), before.begin(), before.end(),
                      std::back_inserter(expected));
  if (!std::equal(expected.begin(), expected.end(), added.begin(), added.end()))
    return "`added` is not the new pairs without the old ones";
  expected.clear();
  std::set_difference(before.begin(), before.end(), newPairs.begin(), newPairs.end(),
                      std::back_inserter(expected));
  if (!std::equal(expected.begin(), expected.end(), removed.begin(), removed.end()))
    return "`removed` is not the old pairs without the new ones";
  return {};
}

void checkStep(const StepInput& input, View<const Pair> oldPairs, View<const Pair> newPairs,
               View<const Pair> added, View<const Pair> removed) try {
  check(whyPairsAreWrong(newPairs, input.boxes, input.filters));
  check(whyDeltaIsWrong(oldPairs, newPairs, added, removed, input.removedObjects));
} catch (const std::bad_alloc&) {
  // Only the check has failed. The step itself has succeeded.
}
}  // namespace lbvh
