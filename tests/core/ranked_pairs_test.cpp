// SPDX-License-Identifier: Zlib
// Tests steps on the host without a skin, which find pairs by rank. Pairs are exact while boxes
// move, appear, vanish and change their class. They are also exact with corners rounded to 16 bits.
#include "broadphase/host/ranked_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "broadphase/core/morton.h"
#include "broadphase/host/blocks.h"
#include "failing_new.h"
#include "simd_test.h"
#include "skin_hook.h"
#include "support.h"
#include "watched_finder.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::view;
using test::Watched;

using RankedPairsTest = test::SimdTest;

Aabb anywhere(Random& random) {
  return boxAt(random.uniform(0, 12), random.uniform(0, 12), random.uniform(0, 12),
               random.uniform(0.3f, 0.6f));
}

void move(Boxes& boxes, float most, Random& random) {
  for (Aabb& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      const float d = random.uniform(-most, most);
      box.min[axis] += d;
      box.max[axis] += d;
    }
}

/// In some steps, changes the scene in addition to the motion of all boxes.
void change(Watched& scene, int step, Random& random) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto any = [&] { return random.below(static_cast<std::uint32_t>(scene.boxes.size())); };
  if (step % 5 == 1) scene.boxes.push_back(anywhere(random));
  if (step % 11 == 5) scene.boxes.pop_back();
  if (step % 17 == 3) scene.boxes[any()].min[1] = NAN;
  if (step % 23 == 7) scene.boxes[any()] = {{-inf, -1, -inf}, {inf, 1, inf}};
  if (step % 23 == 20)
    for (Aabb& box : scene.boxes)
      if (classify(box) != BoxClass::ordinary) box = anywhere(random);
  if (step % 7 == 2) {
    const std::uint32_t i = any();
    scene.boxes[i] = anywhere(random);
    scene.replaceObject(i);
  }
  if (step % 40 == 39)
    for (std::size_t i = 0; i < scene.boxes.size(); i += 3) scene.boxes[i] = anywhere(random);
  if (step == 100) scene.boxes.resize(200);
  if (step == 120)
    while (scene.boxes.size() < 600) scene.boxes.push_back(anywhere(random));
}

TEST_P(RankedPairsTest, AreExactWhateverHappens) {
  for (const char* skin : {"never", "alternating"})
    for (const int threads : {1, 3})
      for (const bool isFiltered : {false, true}) {
        SCOPED_TRACE(std::string(skin) + ", threads " + std::to_string(threads));
        test::forceSkin(skin);
        Watched scene(threads);
        test::forceSkin("automatic");
        Random random(961);
        for (int i = 0; i < 600; ++i) scene.boxes.push_back(anywhere(random));
        for (int step = 0; step < 150; ++step) {
          move(scene.boxes, step % 50 < 25 ? 0.1f : 0.01f, random);
          change(scene, step, random);
          scene.filters.clear();
          for (std::size_t i = 0; isFiltered && i < scene.boxes.size(); ++i)
            scene.filters.push_back({1 << i % 3, i % 5 == 0 ? 3 : 7});
          scene.step(false, random.below(3) == 0);
          ASSERT_FALSE(HasFailure()) << "step " << step;
        }
      }
}

// A failed step keeps the pairs of the previous step, whether or not they have been sorted by
// index.
TEST_P(RankedPairsTest, SurviveAFailedStep) {
  test::forceSkin("never");
  Watched scene(1, 2000);
  test::forceSkin("automatic");
  Random random(962);
  for (int i = 0; i < 600; ++i) scene.boxes.push_back(anywhere(random));
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < 1 + round; ++step) {
      move(scene.boxes, 0.05f, random);
      scene.step(false, round == 2);
    }
    const test::Pairs before = test::bruteForce(scene.boxes);
    const Boxes many(600, boxAt(0, 0, 0, 1));
    EXPECT_THROW(scene.finder.update(view(many)), std::length_error);
    EXPECT_EQ(test::toVector(scene.finder.pairs()), before) << round;
    ASSERT_FALSE(HasFailure()) << round;
  }
}

// All boxes move far, so the previous step's pairs need new ranks. If there is no memory for the
// new ranks, the pairs are compared by index, or the step fails.
TEST(RankedPairs, NewRanksSurviveFailedAllocations) {
  Random random(966);
  Boxes first, later;
  for (int i = 0; i < 600; ++i)
    first.push_back(anywhere(random)), later.push_back(anywhere(random));
  Boxes second = first;
  move(second, 0.05f, random);
  Options options;
  options.backend = Backend::host;
  options.threads = 1;
  bool hasFailed = true;
  long allocations = 0;
  for (; hasFailed; ++allocations) {
    SCOPED_TRACE(allocations);
    test::forceSkin("never");
    PairFinder finder(options);
    test::forceSkin("automatic");
    finder.update(view(first));
    finder.update(view(second));
    bool isDone = false;
    try {
      failing_new::callWith(allocations, [&] { finder.update(view(later)), isDone = true; });
    } catch (const std::bad_alloc&) {
    }
    hasFailed = failing_new::hasFailed;
    if (isDone) EXPECT_EQ(finder.stats().pairs, test::bruteForce(later).size());
    if (allocations % 2 == 0)
      EXPECT_EQ(test::toVector(finder.pairs()), test::bruteForce(isDone ? later : second));
    finder.update(view(first));
    EXPECT_EQ(test::toVector(finder.pairs()), test::bruteForce(first));
  }
  EXPECT_GE(allocations, 3);
}

TEST_P(RankedPairsTest, PatchesOfPairsAreExact) {
  Random random(963);
  for (const std::uint32_t size : {0u, 5u, 40u, 700u})
    for (const std::uint32_t changes : {0u, 1u, 3u, 20u, 400u}) {
      const auto some = [&](std::uint32_t n) {
        test::Pairs pairs;
        for (std::uint32_t i = 0; i < n; ++i) pairs.push_back({random.below(60), random.below(60)});
        std::sort(pairs.begin(), pairs.end());
        pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
        return pairs;
      };
      const test::Pairs old = some(size), now = some(size + changes);
      test::Pairs added, removed, merged(now.size()), patched = old;
      std::set_difference(now.begin(), now.end(), old.begin(), old.end(),
                          std::back_inserter(added));
      std::set_difference(old.begin(), old.end(), now.begin(), now.end(),
                          std::back_inserter(removed));
      mergeChanges(simdKernels(), view(old), view(added), view(removed),
                   {merged.data(), merged.size()});
      ASSERT_EQ(merged, now) << size << " " << changes;
      patched.resize(old.size() + added.size());
      std::vector<std::uint64_t> places(added.size() + removed.size());
      patchPairs(patched.data(), old.size(), view(added), view(removed),
                 {places.data(), places.size()});
      patched.resize(now.size());
      ASSERT_EQ(patched, now) << size << " " << changes;
    }
}

/// Packs boxes in the given order, and finds their pairs with a search by rank.
struct Ranked {
  explicit Ranked(const Boxes& boxes) {
    SceneBounds scene;
    for (std::uint32_t i = 0; i < boxes.size(); ++i) scene += MeasureScene{view(boxes)}(i);
    const ShortGrid grid = ShortGrid::around(scene);
    isFine = grid.isFine(scene);
    std::vector<std::uint32_t> ids(boxes.size());
    std::iota(ids.begin(), ids.end(), 0u);
    HostTasks tasks(1);
    BlockBuilder blocks(tasks, simdKernels());
    blocks.pack(view(boxes), {}, {ids.data(), ids.size()}, ids.size(), false, &grid);
    NeighbourSearch search(tasks, simdKernels());
    const std::size_t number = blocks.packed().tree.leafBlocks;
    std::vector<BlockHits> all(boxes.size() * number);
    std::vector<NeighbourList> byBlock(number);
    const std::uint64_t found =
        search.findByRank(blocks.packed(), {{all.data(), all.size()}, byBlock.data()}, {});
    EXPECT_LE(found, all.size());
    std::uint64_t listed = 0;
    for (std::uint32_t block = 0; block < number; ++block)
      for (std::uint32_t k = 0; k < byBlock[block].size; ++k, ++listed) {
        const BlockHits hits = all[byBlock[block].start + k];
        EXPECT_NE(hits.bits(), 0u);
        EXPECT_EQ(hits.own(block), block);
        forHits(hits.other(), hits.bits(), [&](std::uint32_t rank) {
          pairs.push_back({block * kLanes + hits.lane(), rank});
        });
      }
    EXPECT_EQ(listed, found);
    EXPECT_EQ(pairs.size(), search.rankedPairs());
    unsure = search.unsure();
  }

  test::Pairs pairs;
  bool isFine = false;
  std::uint64_t unsure = 0;
};

TEST_P(RankedPairsTest, SixteenBitCornersDecideOnlySureCases) {
  const bool usesShorts = simdKernels().usesShorts;
  Random random(964);
  Boxes touching;  // cubes that share faces
  for (int i = 0; i < 300; ++i)
    touching.push_back({{float(i % 7), float(i / 7 % 7), float(i / 49)},
                        {float(i % 7 + 1), float(i / 7 % 7 + 1), float(i / 49 + 1)}});
  const Ranked ofTouching(touching);
  EXPECT_EQ(ofTouching.pairs, test::bruteForce(touching));
  EXPECT_TRUE(ofTouching.isFine);
  EXPECT_EQ(ofTouching.unsure > 0, usesShorts);

  Boxes scattered;
  for (int i = 0; i < 300; ++i) scattered.push_back(anywhere(random));
  EXPECT_EQ(Ranked(scattered).pairs, test::bruteForce(scattered));
  for (int i = 0; i < 20; ++i) scattered.push_back(boxAt(1e6f, 1e6f + float(i), -1e6f, 0.7f));
  scattered.push_back({{1, 1, 1}, {-1, -1, -1}});  // inverted
  const Ranked ofCoarse(scattered);
  EXPECT_EQ(ofCoarse.pairs, test::bruteForce(scattered));
  EXPECT_FALSE(ofCoarse.isFine);

  const Boxes flat(40, boxAt(3, 4, 5, 0));  // without extent
  EXPECT_EQ(Ranked(flat).pairs, test::bruteForce(flat));
}

// A search tests 256 blocks at a time, and its buffer holds 4,096 hits of a block. Large boxes
// exceed both limits.
TEST_P(RankedPairsTest, LargeBoxesHaveManyHits) {
  Random random(967);
  Boxes boxes;
  const auto add = [&](int number, float half) {
    for (int i = 0; i < number; ++i)
      boxes.push_back(boxAt(random.uniform(0, 16), random.uniform(0, 16), random.uniform(0, 16),
                            half * random.uniform(0.5f, 1)));
  };
  add(70, 20);
  add(5000, 0.4f);
  add(3, 20);
  add(40, 0.4f);
  EXPECT_EQ(Ranked(boxes).pairs, test::bruteForce(boxes));
}

TEST(RankedPairs, HitsKeepAllNumbers) {
  const std::uint32_t last = (1u << 26) - 1;
  for (const std::uint32_t own : {0u, 1u, BlockHits::kGroup - 1, BlockHits::kGroup, last})
    for (const std::uint32_t lane : {0u, 15u})
      for (const std::uint32_t other : {own, last})
        for (const std::uint32_t bits : {1u, 0xFFFFu}) {
          const BlockHits hits = BlockHits::of(own, lane, other, bits);
          EXPECT_EQ(hits.own(own), own);
          EXPECT_EQ(hits.own(own / BlockHits::kGroup * BlockHits::kGroup), own);
          EXPECT_EQ(hits.lane(), lane);
          EXPECT_EQ(hits.other(), other);
          EXPECT_EQ(hits.bits(), bits);
        }
  EXPECT_LT(BlockHits::of(7, 3, last, 0xFFFF).key(), BlockHits::of(7, 4, 7, 1).key());
  EXPECT_LT(BlockHits::of(7, 15, last, 0xFFFF).key(), BlockHits::of(8, 0, 8, 1).key());
}

// Two threads compare the 1,250 blocks, because each thread gets at least 512.
TEST(RankedPairs, ManyBlocksAreExact) {
  test::forceSkin("never");
  Watched scene(3);
  test::forceSkin("automatic");
  Random random(968);
  for (int i = 0; i < 20000; ++i)
    scene.boxes.push_back(boxAt(random.uniform(0, 32), random.uniform(0, 32), random.uniform(0, 32),
                                random.uniform(0.3f, 0.6f)));
  for (int step = 0; step < 3; ++step) {
    if (step == 2)
      for (std::uint32_t i = 0; i < scene.boxes.size(); i += 777) scene.replaceObject(i);
    scene.step();
    ASSERT_FALSE(HasFailure()) << "step " << step;
    move(scene.boxes, 0.05f, random);
  }
}

// Boxes with a NaN are last in a new order, and are in no block.
TEST_P(RankedPairsTest, BoxesMayGetANanWhenTheOrderIsRenewed) {
  test::forceSkin("never");
  Watched scene(1);
  test::forceSkin("automatic");
  Random random(969);
  for (int i = 0; i < 600; ++i) scene.boxes.push_back(anywhere(random));
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < 3; ++step) {
      scene.step(false, false);
      ASSERT_FALSE(HasFailure()) << "round " << round << ", step " << step;
      if (step < 2) move(scene.boxes, 0.01f, random);
    }
    for (std::size_t i = 0; i < scene.boxes.size(); ++i) scene.boxes[i] = anywhere(random);
    for (std::size_t i = 0; i < 100 && round == 1; ++i) scene.boxes[5 * i].max[1] = NAN;
  }
}

// The boxes move out of the grid that was chosen when they were sorted.
TEST_P(RankedPairsTest, BoxesMayLeaveTheSixteenBitGrid) {
  test::forceSkin("never");
  Watched scene(1);
  test::forceSkin("automatic");
  Random random(965);
  for (int i = 0; i < 600; ++i) scene.boxes.push_back(anywhere(random));
  for (int step = 0; step < 20; ++step) {
    for (Aabb& box : scene.boxes) {
      box.min[0] += 2;
      box.max[0] += 2;
    }
    scene.step();
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, RankedPairsTest, test::everySimd(), test::simdName);

}  // namespace
}  // namespace lbvh
