// SPDX-License-Identifier: Zlib
// Tests the delta stage with small chunks. Then chunk borders are at, next to and between pairs
// that are in both lists.
#include "broadphase/host/pair_lists.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "broadphase/core/validate.h"
#include "simd_test.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Pairs;
using test::Random;
using test::view;

Pairs somePairs(std::size_t n, Random& random) {
  Pairs pairs;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t first = random.below(20);
    pairs.push_back({first, first + 1 + random.below(20)});
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

using HostDeltaTest = test::SimdTest;

TEST_P(HostDeltaTest, ResultDoesNotDependOnTheChunkSize) {
  Random random(23);
  HostTasks one(1), three(3);
  for (int round = 0; round < 4000; ++round) {
    Pairs before = somePairs(random.below(150), random);
    Pairs after = before;  // the lists are mostly equal, as in a simulation, or unrelated
    if (random.below(4) == 0) after = somePairs(random.below(150), random);
    const std::size_t changes = random.below(6);
    for (std::size_t i = 0; i < changes && !after.empty(); ++i)
      after.erase(after.begin() + random.below(static_cast<std::uint32_t>(after.size())));
    for (std::size_t i = 0; i < changes && !before.empty(); ++i)
      before.erase(before.begin() + random.below(static_cast<std::uint32_t>(before.size())));
    std::vector<std::uint8_t> removedObjects(random.below(2) * 30);
    for (auto& flag : removedObjects) flag = random.below(8) == 0;
    Pairs memory = before, added(after.size());
    const auto lists = HostPairDelta(simdKernels(), 1 + random.below(50))
                           .compare(round % 2 == 0 ? one : three, {memory.data(), memory.size()},
                                    view(after), view(removedObjects), added.data(), memory.data());
    ASSERT_EQ(whyDeltaIsWrong(view(before), view(after), lists.added, lists.removed,
                              view(removedObjects)),
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, HostDeltaTest, test::everySimd(), test::simdName);

TEST(Validate, FindsWrongPairsAndDeltas) {
  Random random(22);
  const test::Boxes boxes = test::boxSets()[0].make(60, random);
  const Pairs pairs = test::bruteForce(boxes);
  ASSERT_GT(pairs.size(), 20u);
  EXPECT_EQ(whyPairsAreWrong(view(pairs), view(boxes), {}), "");
  Pairs wrong = pairs;
  std::swap(wrong[3], wrong[4]);
  EXPECT_NE(whyPairsAreWrong(view(wrong), view(boxes), {}), "");
  wrong = pairs;
  wrong.push_back({59, 60});
  EXPECT_NE(whyPairsAreWrong(view(wrong), view(boxes), {}), "");
  wrong = pairs;
  wrong.erase(std::find_if(wrong.begin(), wrong.end(), [](Pair p) { return p.first == 0; }));
  EXPECT_NE(whyPairsAreWrong(view(wrong), view(boxes), {}), "") << "a sampled box lost a pair";
  const std::vector<Filter> none(boxes.size(), Filter{0, 0});
  EXPECT_NE(whyPairsAreWrong(view(pairs), view(boxes), view(none)), "");
  EXPECT_EQ(whyDeltaIsWrong({}, view(pairs), view(pairs), {}, {}), "");
  EXPECT_NE(whyDeltaIsWrong({}, view(pairs), view(wrong), {}, {}), "");
  EXPECT_NE(whyDeltaIsWrong(view(pairs), {}, {}, view(wrong), {}), "");
}

}  // namespace
}  // namespace lbvh
