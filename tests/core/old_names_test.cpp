// SPDX-License-Identifier: Zlib
// Tests that programs for version 0.2 still compile and get the same answers. Version 0.4 removes
// the old names and this test.
#include <gtest/gtest.h>

#include <stdexcept>

#include "broadphase/core/old_names.h"
#include "broadphase/device_pair_finder.h"
#include "broadphase/pair_finder.h"
#include "broadphase/tree_query.h"
#include "portable.h"
#include "support.h"

GPULBVH_BEGIN_OLD_NAMES

namespace lbvh {
namespace {

using test::Boxes;
using test::toVector;
using test::view;

TEST(OldNames, InstructionSetOfTheOptionsIsUsed) {
  const Boxes boxes = test::rowOfBoxes(300);
  const char* const names[] = {"baseline", "avx2", "avx512", "neon"};
  const test::ScopedVariable simd("GPULBVH_SIMD", "avx2");
  Options options;
  options.backend = Backend::host;
  int available = 0;
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2,
                                   InstructionSet::avx512, InstructionSet::neon}) {
    options.instructions = set;
    if (!whyUnavailable(set).empty()) {
      EXPECT_THROW(PairFinder{options}, std::runtime_error);
      continue;
    }
    ++available;
    PairFinder finder(options);
    finder.update(view(boxes));
    EXPECT_EQ(finder.stats().instructions, names[static_cast<int>(set) - 1]);
    EXPECT_EQ(toVector(finder.pairs()), test::bruteForce(boxes));
  }
  EXPECT_GE(available, 1);
  EXPECT_EQ(whyUnavailable(InstructionSet::automatic), "");
  EXPECT_NE(whyUnavailable(static_cast<InstructionSet>(99)), "");
}

TEST(OldNames, FinderBuildsATreeAndRemovesObjects) {
  const Boxes boxes = test::rowOfBoxes(90);
  PairFinder finder;
  finder.update(view(boxes));
  finder.buildTree(view(boxes));
  EXPECT_EQ(toVector(finder.pairs()), test::bruteForce(boxes));
  EXPECT_EQ(finder.tree().nodes.size(), 2 * 90u - 1);
  BatchHits hits;
  aabbTestBatch(finder.tree(), view(boxes), view(boxes), hits);
  EXPECT_EQ(hits.boxes.size(), 90 + 2 * finder.pairs().size());
  const Ray ray{{0, 0, 0}, {1, 0, 0}, 1000};
  rayTestBatch(finder.tree(), view(boxes), {&ray, 1}, hits, 1);
  EXPECT_EQ(hits.boxes.size(), 90u);
  EXPECT_THROW(rayTestBatch(finder.tree(), {}, {}, hits, -1), std::invalid_argument);
  finder.removeObject(3);
  finder.update(view(boxes));
  EXPECT_TRUE(finder.tree().nodes.empty());
  EXPECT_EQ(finder.added().size(), 2u) << "the pairs of the new object";
  EXPECT_EQ(finder.removed().size(), 0u);
  const PairFinder& constant = finder;
  EXPECT_EQ(toVector(constant.pairs()), test::bruteForce(boxes));
}

// The sets include infinite, inverted and NaN boxes.
TEST(OldNames, QueriesOfAnOldTreeEqualThoseOfABoxTree) {
  test::Random random(41);
  PairFinder finder;
  BoxTree tree(1);
  BatchHits hits, expected;
  for (const test::BoxSet& set : test::boxSets()) {
    const Boxes boxes = set.make(300, random), queries = set.make(40, random);
    finder.buildTree(view(boxes));
    tree.build(view(boxes));
    tree.aabbTest(view(queries), expected);
    aabbTestBatch(finder.tree(), view(boxes), view(queries), hits, 1);
    EXPECT_EQ(hits.boxes, expected.boxes) << set.name;
    std::size_t visits = 0;
    for (const Aabb& query : queries)
      queryTree(
          finder.tree(), view(boxes), [&](const auto& bounds) { return overlap(query, bounds); },
          [&](std::uint32_t) { ++visits; });
    EXPECT_EQ(visits, expected.boxes.size()) << set.name;
  }
}

/// The boxes of the leaves below a node, in the tree's order.
std::vector<std::uint32_t> leavesBelow(const Tree& tree, const Node& top) {
  if (top.isLeaf()) return {top.box()};
  const Node& left = tree.nodes[static_cast<std::size_t>(top.left)];
  std::vector<std::uint32_t> leaves = leavesBelow(tree, left);
  const std::vector<std::uint32_t> right =
      leavesBelow(tree, tree.nodes[static_cast<std::size_t>(left.rope)]);
  leaves.insert(leaves.end(), right.begin(), right.end());
  return leaves;
}

TEST(OldNames, EachLevelOfATreeHasEveryLeafOnceAndInOrder) {
  test::Random random(43);
  const Boxes boxes = test::boxSets()[0].make(150, random);
  PairFinder finder;
  finder.buildTree(view(boxes));
  const Tree tree = finder.tree();
  const std::vector<std::uint32_t> all = leavesBelow(tree, tree.nodes[0]);
  ASSERT_EQ(all.size(), 150u);
  std::size_t before = 0;
  for (int level = 0; level < 70; ++level) {
    std::vector<std::uint32_t> leaves;
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
  EXPECT_EQ(before, 150u) << "below the deepest level";
  EXPECT_EQ(nodesAtLevel(tree, 0).size(), 1u);
  finder.buildTree({});
  EXPECT_TRUE(nodesAtLevel(finder.tree(), 3).empty());
}

TEST(OldNames, DeviceFinderTakesPackedBoxes) {
  const Boxes boxes = test::rowOfBoxes(40);
  DeviceOptions options;
  options.backend = Backend::host;
  options.leastCapacity = 7;
  DevicePairFinder finder(options);
  EXPECT_EQ(finder.find(View<const Aabb>{}, {}, nullptr).capacity, 7u);
  finder.reserve(10, 0);
  const DevicePairs found = finder.find(view(boxes), {}, nullptr);
  ASSERT_EQ(*found.count, 39u);
  EXPECT_GE(found.capacity, 80u);
  EXPECT_EQ(test::Pairs(found.data, found.data + 39), test::bruteForce(boxes));
  EXPECT_THROW(finder.find({nullptr, 3}, {nullptr, 2}, nullptr), std::invalid_argument);
  options.backend = Backend::automatic;
  EXPECT_THROW(DevicePairFinder{options}, std::invalid_argument);
}

TEST(OldNames, MedianFieldsOfStatsHoldTheMeans) {
  Stats stats;
  stats.hostMeanMs = 2;
  stats.gpuMeanMs = 3;
  copyToOldNames(stats);
  EXPECT_EQ(stats.hostMedianMs, 2);
  EXPECT_EQ(stats.gpuMedianMs, 3);
}

TEST(OldNames, ViewHasVariables) {
  int numbers[] = {3, 1, 2};
  View<int> seen;
  EXPECT_TRUE(seen.data == nullptr && seen.size == 0);
  seen.data = numbers;
  seen.size = 3;
  const std::size_t size = seen.size;
  EXPECT_EQ(size, 3u);
  int* const first = seen.data;
  EXPECT_EQ(first, numbers);
  if (seen.data) seen.data[1] = 7;
  EXPECT_EQ(*(seen.data + 1), 7);
  for (std::size_t i = 0; i < seen.size; ++i) EXPECT_EQ(seen[i], numbers[i]);
  const View<const int> rest{seen.data + 1, seen.size - 1};
  EXPECT_EQ(rest.size == 2 ? rest.size : 0, 2u);
  EXPECT_EQ(rest.data[0] + static_cast<int>(rest.size), 9);
  seen.size = seen.size - 3;
  EXPECT_TRUE(seen.empty());
}

}  // namespace
}  // namespace lbvh

GPULBVH_END_OLD_NAMES
