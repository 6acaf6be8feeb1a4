// SPDX-License-Identifier: Zlib
// Compares queries of a BoxTree, one by one and in batches, with a scan of all boxes. Also tests
// how a tree packs its boxes.
#include "broadphase/tree_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>

#include "broadphase/host/block_query.h"
#include "failing_new.h"
#include "skin_hook.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

class EverySetsTree : public testing::TestWithParam<test::BoxSet> {};

TEST_P(EverySetsTree, BoxQueriesVisitExactlyWhatOverlaps) {
  Random random(41);
  BoxTree tree;
  for (const std::size_t n : {0u, 1u, 2u, 3u, 50u, 400u}) {
    const Boxes boxes = GetParam().make(n, random), queries = GetParam().make(40, random);
    tree.build(view(boxes));
    for (const Aabb& query : queries) {
      std::vector<std::uint32_t> visited, expected;
      tree.query([&](const Aabb& bounds) { return overlap(query, bounds); },
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

/// The boxes that `hits` accepts, in ascending order as a batch returns them.
template <class Hits>
Indices scan(const Boxes& boxes, const Hits& hits) {
  Indices found;
  for (std::uint32_t i = 0; i < boxes.size(); ++i)
    if (hits(boxes[i])) found.push_back(i);
  return found;
}

/// Rays between corners of two boxes, so that their lengths suit the box set. Some are parallel to
/// an axis or have no direction.
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
  BoxTree trees[] = {BoxTree(1), BoxTree(3)};
  BatchHits hits;
  for (const std::size_t n : {0u, 1u, 3u, 300u}) {
    const Boxes boxes = GetParam().make(n, random), queries = GetParam().make(500, random);
    const std::vector<Ray> rays = raysAmong(boxes, 500, random);
    for (BoxTree& tree : trees) {
      tree.build(view(boxes));
      tree.aabbTest(view(queries), hits);
      ASSERT_EQ(hits.offsets.size(), queries.size() + 1);
      for (std::size_t i = 0; i < queries.size(); ++i)
        ASSERT_EQ(toVector(hits.of(i)),
                  scan(boxes, [&](const Aabb& box) { return overlap(queries[i], box); }));
      tree.rayTest(view(rays), hits);
      ASSERT_EQ(hits.offsets.size(), rays.size() + 1);
      for (std::size_t i = 0; i < rays.size(); ++i)
        ASSERT_EQ(toVector(hits.of(i)), scan(boxes, RayTest(rays[i])));
    }
  }
}

TEST(TreeQuery, EmptyBatchHasNoHits) {
  BoxTree tree;
  BatchHits hits;
  hits.boxes = {1, 2, 3};
  tree.aabbTest({}, hits);
  EXPECT_EQ(hits.offsets, std::vector<std::size_t>{0});
  EXPECT_TRUE(hits.boxes.empty());
  EXPECT_THROW(BoxTree{-1}, std::invalid_argument);
}

// Checks the slab test against points along the ray.
TEST(TreeQuery, RayHitsBoxesThatContainOneOfItsPoints) {
  Random random(44);
  for (int i = 0; i < 3000; ++i) {
    const Aabb box = test::boxAt(random.uniform(0, 4), random.uniform(0, 4), random.uniform(0, 4),
                                 random.uniform(0.1f, 1));
    Ray ray{{}, {}, random.uniform(0, 2)};
    for (int axis = 0; axis < 3; ++axis) {
      ray.origin[axis] = random.uniform(0, 4);
      ray.direction[axis] = random.below(4) == 0 ? 0 : random.uniform(-2, 2);
    }
    bool isIn = false, isNear = false;  // within the box; within a slightly larger box
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

TEST(TreeQuery, TouchingDegenerateAndNanRaysHitOnlyBoxesTheyTouch) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Aabb box{{0, 0, 0}, {1, 1, 1}};
  const auto hits = [&](const Ray& ray) { return RayTest(ray)(box); };
  EXPECT_TRUE(hits({{-5, 1, 0.5f}, {1, 0, 0}, 9})) << "along a face";
  EXPECT_TRUE(hits({{-5, 1, 1}, {1, 0, 0}, 5})) << "ends at an edge";
  EXPECT_FALSE(hits({{-5, 1, 1}, {1, 0, 0}, 4.99f}));
  EXPECT_TRUE(hits({{-5, 0.5f, 0.5f}, {0.5f, 0, 0}, 10})) << "the unit of length is the direction";
  EXPECT_FALSE(hits({{2, 0.5f, 0.5f}, {1, 0, 0}, inf})) << "the box is behind the origin";
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

// Includes infinite, inverted and NaN boxes, and rays with zero components or infinite length.
TEST(TreeQuery, TestOfSixteenBoxesEqualsTestsOfEach) {
  Random random(48);
  const float inf = std::numeric_limits<float>::infinity();
  std::size_t hits = 0;
  for (const test::BoxSet& set : test::boxSets())
    for (int round = 0; round < 60; ++round) {
      const Boxes boxes = set.make(kLanes, random);
      BoxBlock block;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) block.set(lane, boxes[lane], lane);
      for (Ray ray : raysAmong(boxes, 30, random)) {
        if (random.below(8) == 0) ray.length = random.below(2) == 0 ? inf : std::nanf("");
        if (random.below(8) == 0) ray.origin[random.below(3)] = boxes[0].max[0];
        const RayTest test(ray);
        const std::uint32_t lanes = test.lanes(block.corners);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
          ASSERT_EQ(lanes >> lane & 1, test(block.box(lane)) ? 1u : 0u) << set.name;
        hits += lanes != 0;
      }
    }
  EXPECT_GT(hits, 1000u);
}

/// Number of boxes in the tree, which leaves out boxes with a NaN.
std::size_t boxesIn(const BoxTree& tree) {
  std::size_t visits = 0;
  tree.query([](const Aabb&) { return true; }, [&](std::uint32_t) { ++visits; });
  return visits;
}

TEST(TreeQuery, TooManyBoxesLeaveTheTreeEmpty) {
  BoxTree tree;
  EXPECT_EQ(boxesIn(tree), 0u) << "before the first build";
  const Boxes boxes = test::rowOfBoxes(3);
  tree.build(view(boxes));
  EXPECT_EQ(boxesIn(tree), 3u);
  EXPECT_THROW(tree.build({boxes.data(), (std::size_t{1} << 30) + 1}), std::length_error);
  EXPECT_EQ(boxesIn(tree), 0u);
  BatchHits hits;
  tree.aabbTest(view(boxes), hits);
  EXPECT_TRUE(hits.boxes.empty());
}

TEST(TreeQuery, MovedTreeAnswersQueries) {
  const Boxes boxes = test::rowOfBoxes(50);
  BoxTree tree(1);
  tree.build(view(boxes));
  const std::size_t bytes = tree.memoryBytes();
  EXPECT_GE(bytes, 50 * sizeof(Aabb));
  BoxTree other(std::move(tree));
  EXPECT_EQ(other.memoryBytes(), bytes);
  BatchHits hits;
  other.aabbTest(view(boxes), hits);
  EXPECT_EQ(hits.boxes.size(), 50 + 2 * test::bruteForce(boxes).size());
}

Indices orderOf(const PackedBoxes& packed) {
  Indices order;
  queryPacked(
      packed, [](const Aabb&) { return true; }, [&](std::uint32_t box) { order.push_back(box); });
  return order;
}

// Covers short and long keys, boxes that are kept outside the blocks, and last blocks that are full
// or partly filled.
TEST_P(EverySetsTree, PacksBoxesAsAStepDoes) {
  test::forceSkin("never");
  Options options;
  options.backend = Backend::host;
  options.threads = 1;
  PairFinder finder(options);
  test::forceSkin("automatic");
  Random random(45);
  BoxTree trees[] = {BoxTree(1), BoxTree(3)};
  for (const std::size_t n : {257u, 512u, 700u}) {
    const Boxes boxes = GetParam().make(n, random);
    finder.update(view(boxes));
    for (BoxTree& tree : trees) {
      tree.build(view(boxes));
      EXPECT_EQ(orderOf(*packedOf(tree)), orderOf(*packedOf(finder))) << n;
    }
  }
}

// A step leaves up to 256 boxes in the order of their indices. A tree sorts its boxes as soon as
// they fill more than one block, because queries repay the cost.
TEST(TreeQuery, QueriesOfSmallTreesTestFewBoxes) {
  Random random(46);
  BoxTree tree;
  for (const std::size_t n : {16u, 64u, 256u}) {
    Boxes boxes;
    for (std::size_t i = 0; i < n; ++i)
      boxes.push_back(test::boxAt(random.uniform(0, 100), random.uniform(0, 100),
                                  random.uniform(0, 100), 0.5f));
    tree.build(view(boxes));
    std::size_t tests = 0;
    for (const Aabb& around : boxes)
      tree.query(
          [&](const Aabb& box) {
            ++tests;
            return overlap(box, around);
          },
          [](std::uint32_t) {});
    EXPECT_LE(tests, n * (n == 16 ? 17 : 70)) << n;
  }
}

// Makes each allocation of a build fail, one per build. The previous tree is not restored.
TEST(TreeQuery, FailedBuildLeavesTheTreeEmpty) {
  Random random(47);
  const Boxes few = test::boxSets()[0].make(20, random),
              many = test::boxSets()[0].make(3000, random);
  BatchHits hits;
  long failures = 0;
  for (bool hasFailed = true; hasFailed; ++failures) {
    BoxTree tree(1);
    tree.build(view(few));
    hasFailed = failing_new::callWith(failures, [&] {
      try {
        tree.build(view(many));
      } catch (const std::bad_alloc&) {
      }
    });
    tree.aabbTest(view(many), hits);
    EXPECT_EQ(boxesIn(tree), hasFailed ? 0 : many.size()) << failures;
    EXPECT_EQ(hits.boxes.empty(), hasFailed) << failures;
    EXPECT_EQ(packedOf(tree) == nullptr, hasFailed) << failures;
  }
  EXPECT_GT(failures, 2) << "too few allocations failed";
}

}  // namespace
}  // namespace lbvh
