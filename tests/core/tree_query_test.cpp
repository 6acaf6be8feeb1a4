// SPDX-License-Identifier: Zlib
// Queries of the core's tree, one by one and in batches, against a scan of all boxes.
#include "broadphase/tree_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

class EverySetsTree : public testing::TestWithParam<test::BoxSet> {};

TEST_P(EverySetsTree, BoxQueriesVisitExactlyWhatOverlaps) {
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

INSTANTIATE_TEST_SUITE_P(TreeQuery, EverySetsTree, testing::ValuesIn(test::boxSets()),
                         [](const auto& param) { return param.param.name; });

using Indices = std::vector<std::uint32_t>;

Indices toVector(View<const std::uint32_t> indices) { return {indices.begin(), indices.end()}; }

/// Ascending, as a batch promises.
template <class Hits>
Indices scan(const Boxes& boxes, const Hits& hits) {
  Indices found;
  for (std::uint32_t i = 0; i < boxes.size(); ++i)
    if (hits(boxes[i])) found.push_back(i);
  return found;
}

/// Rays between the corners of two boxes, so at the scale of the set; some along an axis, or of no
/// length.
std::vector<Ray> raysAmong(const Boxes& boxes, std::size_t n, Random& random) {
  std::vector<Ray> rays;
  for (std::size_t i = 0; i < n && !boxes.empty(); ++i) {
    const auto size = static_cast<std::uint32_t>(boxes.size());
    const Aabb &from = boxes[random.below(size)], &to = boxes[random.below(size)];
    Ray ray{{}, {}, random.uniform(0, 1.5f)};
    for (int axis = 0; axis < 3; ++axis) {
      ray.origin[axis] = from.min[axis];
      ray.direction[axis] = random.below(4) == 0 ? 0 : to.max[axis] - from.min[axis];
    }
    rays.push_back(ray);
  }
  return rays;
}

TEST_P(EverySetsTree, BatchesEqualAScan) {
  Random random(43);
  PairFinder finder;
  BatchHits hits;
  for (const std::size_t n : {0u, 1u, 3u, 300u}) {
    const Boxes boxes = GetParam().make(n, random), queries = GetParam().make(500, random);
    const std::vector<Ray> rays = raysAmong(boxes, 500, random);
    finder.buildTree(view(boxes));
    for (const int threads : {1, 3}) {
      aabbTestBatch(finder.tree(), view(boxes), view(queries), hits, threads);
      ASSERT_EQ(hits.offsets.size(), queries.size() + 1);
      for (std::size_t i = 0; i < queries.size(); ++i)
        ASSERT_EQ(toVector(hits.of(i)),
                  scan(boxes, [&](const Aabb& box) { return overlap(queries[i], box); }));
      rayTestBatch(finder.tree(), view(boxes), view(rays), hits, threads);
      ASSERT_EQ(hits.offsets.size(), rays.size() + 1);
      for (std::size_t i = 0; i < rays.size(); ++i)
        ASSERT_EQ(toVector(hits.of(i)), scan(boxes, RayTest(rays[i])));
    }
  }
}

TEST(TreeQuery, AnEmptyBatchHasNoHits) {
  PairFinder finder;
  BatchHits hits;
  hits.boxes = {1, 2, 3};
  aabbTestBatch(finder.tree(), {}, {}, hits);
  EXPECT_EQ(hits.offsets, std::vector<std::size_t>{0});
  EXPECT_TRUE(hits.boxes.empty());
  EXPECT_THROW(rayTestBatch(finder.tree(), {}, {}, hits, -1), std::invalid_argument);
}

// The slab test itself, against points along the ray.
TEST(TreeQuery, ARayHitsABoxThatContainsOneOfItsPoints) {
  Random random(44);
  for (int i = 0; i < 3000; ++i) {
    const Aabb box = test::boxAt(random.uniform(0, 4), random.uniform(0, 4), random.uniform(0, 4),
                                 random.uniform(0.1f, 1));
    Ray ray{{}, {}, random.uniform(0, 2)};
    for (int axis = 0; axis < 3; ++axis) {
      ray.origin[axis] = random.uniform(0, 4);
      ray.direction[axis] = random.below(4) == 0 ? 0 : random.uniform(-2, 2);
    }
    bool isIn = false, isNear = false;  // within the box; within one a little larger
    for (int step = 0; step <= 1000; ++step) {
      const float t = ray.length * static_cast<float>(step) / 1000;
      float outside = -1;
      for (int axis = 0; axis < 3; ++axis) {
        const float at = ray.origin[axis] + t * ray.direction[axis];
        outside = std::max({outside, box.min[axis] - at, at - box.max[axis]});
      }
      isIn |= outside < -1e-4f;
      isNear |= outside < 1e-2f;
    }
    const bool hit = RayTest(ray)(box);
    ASSERT_TRUE(hit || !isIn) << i;
    ASSERT_TRUE(!hit || isNear) << i;
  }
}

TEST(TreeQuery, TouchingDegenerateAndNanRaysHitOnlyWhatTheyMeet) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Aabb box{{0, 0, 0}, {1, 1, 1}};
  const auto hits = [&](const Ray& ray) { return RayTest(ray)(box); };
  EXPECT_TRUE(hits({{-5, 1, 0.5f}, {1, 0, 0}, 9})) << "along a face";
  EXPECT_TRUE(hits({{-5, 1, 1}, {1, 0, 0}, 5})) << "ends at an edge";
  EXPECT_FALSE(hits({{-5, 1, 1}, {1, 0, 0}, 4.99f}));
  EXPECT_TRUE(hits({{-5, 0.5f, 0.5f}, {0.5f, 0, 0}, 10})) << "length counts directions";
  EXPECT_FALSE(hits({{2, 0.5f, 0.5f}, {1, 0, 0}, inf})) << "it lies behind";
  EXPECT_TRUE(hits({{-5, 0.5f, 0.5f}, {1, 0, 0}, inf}));
  EXPECT_TRUE(hits({{1, 1, 1}, {0, 0, 0}, 0})) << "a point";
  EXPECT_FALSE(hits({{1, 1, 1.01f}, {0, 0, 0}, inf}));
  EXPECT_TRUE(hits({{0, 0.5f, 0.5f}, {1e-44f, 1, 0}, 0.1f})) << "no finite reciprocal";
  EXPECT_FALSE(hits({{0.5f, 0.5f, 0.5f}, {1, 0, 0}, -1}));
  EXPECT_FALSE(hits({{0.5f, 0.5f, 0.5f}, {1, 0, nan}, 1}));
  EXPECT_FALSE(hits({{nan, 0.5f, 0.5f}, {1, 0, 0}, 1}));
  EXPECT_FALSE(hits({{0.5f, 0.5f, 0.5f}, {1, 0, 0}, nan}));
  EXPECT_FALSE(RayTest({{0.5f, 0.5f, 0.5f}, {1, 1, 1}, 1})(Aabb{{1, 0, 0}, {0, 1, 1}}))
      << "inverted";
  for (int corner = 0; corner < 6; ++corner) {
    Aabb broken{{0, 0, 0}, {1, 1, 1}};
    (corner < 3 ? broken.min : broken.max)[corner % 3] = nan;
    EXPECT_FALSE(RayTest({{-1, -1, -1}, {1, 1, 1}, 9})(broken)) << corner;
    EXPECT_FALSE(RayTest({{2, 2, 2}, {-1, -1, -1}, 9})(broken)) << corner;
  }
  EXPECT_TRUE(RayTest({{5, 5, 5}, {1, 2, 3}, 1})(Aabb{{-inf, -inf, -inf}, {inf, inf, inf}}));
}

TEST(TreeQuery, BuildTreeDoesNotChangePairs) {
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

/// The boxes of the leaves below a node, in the tree's order.
Indices leavesBelow(const Tree& tree, const Node& top) {
  if (top.isLeaf()) return {top.box()};
  const Node& left = tree.nodes[static_cast<std::size_t>(top.left)];
  Indices leaves = leavesBelow(tree, left);
  const Indices right = leavesBelow(tree, tree.nodes[static_cast<std::size_t>(left.rope)]);
  leaves.insert(leaves.end(), right.begin(), right.end());
  return leaves;
}

TEST(TreeQuery, EachLevelHasEveryLeafOnceAndInOrder) {
  Random random(43);
  const Boxes boxes = test::boxSets()[0].make(150, random);
  PairFinder finder;
  finder.buildTree(view(boxes));
  const Tree tree = finder.tree();
  const Indices all = leavesBelow(tree, tree.nodes[0]);
  ASSERT_EQ(all.size(), 150u);
  std::size_t before = 0;
  for (int level = 0; level < 70; ++level) {
    Indices leaves;
    const std::vector<Node> nodes = nodesAtLevel(tree, level);
    for (const Node& node : nodes) {
      for (const std::uint32_t box : leavesBelow(tree, node)) {
        for (int axis = 0; axis < 3; ++axis) {
          EXPECT_LE(node.min[axis], boxes[box].min[axis]);
          EXPECT_GE(node.max[axis], boxes[box].max[axis]);
        }
        leaves.push_back(box);
      }
    }
    EXPECT_EQ(leaves, all) << level;
    EXPECT_TRUE(nodes.size() > before || before == 150u) << level;
    before = nodes.size();
    if (level == 1) EXPECT_EQ(nodes.size(), 2u);
  }
  EXPECT_EQ(before, 150u) << "behind the deepest level";
  EXPECT_EQ(nodesAtLevel(tree, 0).size(), 1u);
  finder.buildTree({});
  EXPECT_TRUE(nodesAtLevel(finder.tree(), 3).empty());
}

}  // namespace
}  // namespace lbvh
