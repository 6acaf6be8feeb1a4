// Box queries of the core's tree against a scan of all boxes.
#include "broadphase/tree_query.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

class EverySet : public testing::TestWithParam<test::BoxSet> {};

TEST_P(EverySet, BoxQueriesVisitExactlyWhatOverlaps) {
  Random random(41);
  PairFinder finder;
  for (const std::size_t n : {0u, 1u, 2u, 3u, 50u, 400u}) {
    const Boxes boxes = GetParam().make(n, random), queries = GetParam().make(40, random);
    finder.buildTree(view(boxes));
    for (const Aabb& query : queries) {
      std::vector<std::uint32_t> visited, expected;
      queryTree(
          finder.tree(), view(boxes), [&](const auto& bounds) { return overlap(query, bounds); },
          [&](std::uint32_t box) { visited.push_back(box); });
      for (std::uint32_t i = 0; i < n; ++i)
        if (overlap(query, boxes[i])) expected.push_back(i);
      std::sort(visited.begin(), visited.end());
      ASSERT_EQ(visited, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TreeQuery, EverySet, testing::ValuesIn(test::boxSets()),
                         [](const auto& param) { return param.param.name; });

TEST(TreeQuery, BuildTreeLeavesPairsAlone) {
  Random random(42);
  const Boxes boxes = test::boxSets()[0].make(200, random),
              others = test::boxSets()[0].make(90, random);
  PairFinder finder;
  finder.update(view(boxes));
  finder.buildTree(view(others));
  EXPECT_EQ(test::toVector(finder.pairs()), test::bruteForce(boxes));
  EXPECT_EQ(finder.tree().nodes.size, 2 * 90u - 1);
  finder.update(view(boxes));
  EXPECT_TRUE(finder.added().empty());
  EXPECT_TRUE(finder.removed().empty());
}

}  // namespace
}  // namespace lbvh
