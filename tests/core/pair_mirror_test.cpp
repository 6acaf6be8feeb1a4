// SPDX-License-Identifier: Zlib
// The copy of the GPU's pairs that the host goes on from when the GPU fails.
#include "broadphase/choose/pair_mirror.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "support.h"

namespace lbvh {
namespace {

using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

std::vector<std::uint8_t> someRemoved(Random& random) {
  std::vector<std::uint8_t> flags(random.below(2) == 0 ? 20 : 50);
  for (std::uint32_t count = random.below(4); count > 0; --count)
    flags[random.below(static_cast<std::uint32_t>(flags.size()))] = 1;
  return flags;
}

/// Logs a step, and makes `now` the pairs after it.
void logStep(PairMirror& mirror, Pairs& now, const Pairs& next,
             const std::vector<std::uint8_t>& removedObjects) {
  std::erase_if(now, [&](Pair pair) { return involvesRemoved(pair, view(removedObjects)); });
  Pairs added, removed;
  std::set_difference(next.begin(), next.end(), now.begin(), now.end(), std::back_inserter(added));
  std::set_difference(now.begin(), now.end(), next.begin(), next.end(),
                      std::back_inserter(removed));
  mirror.log(view(added), view(removed), view(removedObjects));
  now = next;
}

TEST(PairMirror, FollowsAnyNumberOfDeltas) {
  Random random(102);
  PairMirror mirror;
  Pairs now;
  for (int round = 0; round < 3000; ++round) {
    Pairs next;
    const std::uint32_t oneIn = 2 + random.below(3);
    for (std::uint32_t i = 0; i < 30; ++i)
      if (random.below(oneIn) != 0) next.push_back({i / 6, 10 + i});
    const bool anyRemoved = random.below(round < 1500 ? 2 : 10) == 0;
    logStep(mirror, now, next, anyRemoved ? someRemoved(random) : std::vector<std::uint8_t>());
    if (random.below(12) == 0) mirror.assign(view(now));
    if (random.below(6) == 0) ASSERT_EQ(toVector(mirror.pairs()), now) << round;
  }
}

// An index is another object after its removal: in the same step, later, or never.
TEST(PairMirror, PairsOfRemovedObjectsEndWithoutBeingReported) {
  const auto pairsAfter = [](const std::vector<std::vector<std::uint8_t>>& flags,
                             const std::vector<Pairs>& added) {
    PairMirror mirror;
    const Pairs before = {{0, 1}, {0, 2}, {1, 2}};
    mirror.assign(view(before));
    for (std::size_t step = 0; step < flags.size(); ++step)
      mirror.log(view(added[step]), {}, view(flags[step]));
    return toVector(mirror.pairs());
  };
  EXPECT_EQ(pairsAfter({{0, 1}}, {{}}), (Pairs{{0, 2}}));
  EXPECT_EQ(pairsAfter({{0, 1}}, {{{0, 1}}}), (Pairs{{0, 1}, {0, 2}}));
  EXPECT_EQ(pairsAfter({{0, 1}, {}}, {{}, {{1, 2}}}), (Pairs{{0, 2}, {1, 2}}));
  EXPECT_EQ(pairsAfter({{0, 1}, {0, 0, 1}}, {{{1, 2}}, {}}), (Pairs{}));
  EXPECT_EQ(pairsAfter({{0, 1}, {0, 1}}, {{{1, 2}}, {{0, 1}}}), (Pairs{{0, 1}, {0, 2}}));
}

TEST(PairMirror, CountsRemovalsForAsLongAsNobodyReads) {
  Random random(103);
  PairMirror mirror;
  Pairs now = {{0, 1}, {2, 3}, {4, 5}};
  mirror.assign(view(now));
  for (std::uint32_t step = 0; step < 5000; ++step) {
    std::vector<std::uint8_t> removedObjects(8);
    removedObjects[step % 97 == 0 ? 4 : 7] = 1;
    const Pairs next = {{0, 1}, {2, 3}, {4, 5 + step / 97 % 2}};
    logStep(mirror, now, next, removedObjects);
  }
  EXPECT_EQ(toVector(mirror.pairs()), now);
  EXPECT_LT(mirror.memoryBytes(), 10000u);
}

}  // namespace
}  // namespace lbvh
