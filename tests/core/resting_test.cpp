// SPDX-License-Identifier: Zlib
// Tests which boxes a step on the host searches for: the boxes that left their skins (skin.h), or
// all boxes. Also tests steps after a failed step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "broadphase/core/morton.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/step.h"
#include "portable.h"
#include "simd_test.h"
#include "skin_hook.h"
#include "support.h"
#include "watched_finder.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::bruteForce;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;
using test::Watched;

/// The finders of these tests use a skin from the first step on.
class Resting : public testing::Test {
 protected:
  void SetUp() override { test::forceSkin("always"); }
  void TearDown() override { test::forceSkin("automatic"); }
};

TEST_F(Resting, OnlyBoxesThatChangeMuchAreSearched) {
  Random random(55);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  EXPECT_EQ(scene.step(), 400u);
  const int mortonBits = scene.finder.stats().mortonBits;
  EXPECT_GT(mortonBits, 0);
  EXPECT_EQ(scene.step(), 0u);
  EXPECT_EQ(scene.finder.stats().mortonBits, mortonBits) << "that of the last full search";
  for (std::size_t i = 0; i < 30; ++i) scene.boxes[i].max[0] += 0.1f;
  EXPECT_EQ(scene.step(), 30u);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(scene.step(), 0u);
  for (std::size_t i = 0; i < 30; ++i) scene.boxes[i].max[0] += 0.001f;
  EXPECT_EQ(scene.step(), 0u) << "within their skins";
}

TEST_F(Resting, FiltersMayChange) {
  Random random(52);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(600, random);
  scene.filters.resize(600);
  const auto anyFilter = [&] {
    return Filter{1 << random.below(4), static_cast<std::int32_t>(random.bits())};
  };
  for (Filter& filter : scene.filters) filter = anyFilter();
  scene.step();
  for (int k = 0; k < 8; ++k) {
    for (int change = 0; change < 2; ++change) scene.filters[random.below(600)] = anyFilter();
    EXPECT_LE(scene.step(), 2u);
  }
  scene.filters.clear();
  EXPECT_EQ(scene.step(), 600u) << "after filters were dropped, all are searched";
}

TEST_F(Resting, NewBoxesAreSearchedAlone) {
  Random random(53);
  for (const int threads : {1, 3}) {
    Watched scene(threads);
    scene.boxes = test::boxSets()[0].make(1020, random);  // just below a power of two
    scene.step();
    for (int k = 0; k < 6; ++k) {  // while the capacity suffices
      const Boxes more = test::boxSets()[0].make(5, random);
      scene.boxes.insert(scene.boxes.end(), more.begin(), more.end());
      scene.replaceObject(random.below(850));
      EXPECT_EQ(scene.step(), 6u);
    }
    scene.boxes.pop_back();
    EXPECT_EQ(scene.step(), scene.boxes.size()) << "after a box was dropped, all are searched";
  }
}

TEST_F(Resting, FirstAndLastBoxMayBeRemoved) {
  Random random(64);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  scene.boxes.back() = scene.boxes[7];
  scene.boxes.front() = scene.boxes[8];
  scene.step();
  for (const std::uint32_t i : {399u, 0u, 7u, 8u}) {
    scene.replaceObject(i);
    EXPECT_EQ(scene.step(), 1u);
    EXPECT_GT(scene.finder.added().size(), 0u);
  }
}

// Up to 64 new boxes are kept outside the blocks. A step that adds one more packs all boxes again,
// but searches only for the new box.
TEST_F(Resting, AnyNumberOfNewBoxesIsSearchedAlone) {
  Watched scene(1);
  const auto add = [&] { scene.boxes.push_back(boxAt(3.0f * float(scene.boxes.size()), 0, 0, 1)); };
  for (int i = 0; i < 40; ++i) add();
  scene.step();
  for (int k = 0; k < 130; ++k) {
    add();
    EXPECT_EQ(scene.step(), 1u);
  }
}

// First there are enough candidates for every thread. Then there are so few boxes that one thread
// does all tests.
TEST_F(Resting, ThreadsShareTheTests) {
  Random random(54);
  Boxes start;
  for (int i = 0; i < 3000; ++i)
    start.push_back(
        boxAt(random.uniform(0, 10), random.uniform(0, 10), random.uniform(0, 10), 0.8f));
  for (const int threads : {1, 2, 4}) {
    Watched scene(threads);
    scene.boxes = start;
    scene.step();
    EXPECT_GT(scene.finder.pairs().size(), 60000u);
    for (int k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < scene.boxes.size(); i += 10)
        scene.boxes[i] = start[random.below(3000)];
      for (std::size_t i = 1; i < scene.boxes.size(); i += 2)
        scene.boxes[i].max[1] += random.uniform(-0.01f, 0.01f);
      const std::size_t searched = scene.step();
      if (k > 0) EXPECT_LT(searched, 1500u) << "they have skins now";
    }
    scene.boxes.resize(500);
    scene.step();
    EXPECT_EQ(scene.step(), 0u);
  }
}

TEST_F(Resting, AllAreSearchedIfMoreThanHalfMove) {
  Random random(56);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  scene.step();
  for (std::size_t i = 0; i < 200; ++i) scene.boxes[i].max[0] += 0.1f;
  EXPECT_EQ(scene.step(), 200u);
  for (std::size_t i = 0; i < 201; ++i) scene.boxes[i].max[0] += 3;
  EXPECT_EQ(scene.step(), 400u);
}

// The box becomes a hub because it has more candidates than a list may hold (1,024).
TEST_F(Resting, AllAreSearchedIfABoxBecomesAHub) {
  Watched scene(1);
  for (int i = 0; i < 40 * 40; ++i)
    scene.boxes.push_back(boxAt(0.6f * float(i % 40), 0, 0.6f * float(i / 40), 0.5f));
  scene.step();
  scene.boxes[7] = {{-1, 0, -1}, {99, 1, 99}};
  EXPECT_EQ(scene.step(), 1600u);
  scene.boxes[9].max[1] += 3;
  EXPECT_EQ(scene.step(), 1u);
}

TEST_F(Resting, AllAreSearchedIfARestingBoxBecomesAHub) {
  Watched scene(1);
  for (int i = 0; i < 50 * 50; ++i)
    scene.boxes.push_back(boxAt(0.6f * float(i % 50), 0, 0.6f * float(i / 50), 0.5f));
  scene.boxes[7] = {{0, 0, 0}, {30, 1, 11}};  // 950 candidates
  scene.step();
  for (std::size_t i = 1600; i < 2000; ++i)
    scene.boxes[i] = boxAt(0.05f * float(i % 400), 0, 5, 0.01f);
  EXPECT_EQ(scene.step(), 2500u);
  scene.boxes[9].max[1] += 3;
  EXPECT_EQ(scene.step(), 1u);
}

TEST(Skin, BoxesThatStopAfterLongMotionRestSoon) {
  Random random(61);
  for (const bool tells : {false, true}) {
    Watched scene(1);
    scene.boxes = test::boxSets()[0].make(200, random);
    const Boxes others = test::boxSets()[0].make(500, random);
    for (int k = 0; k < 100; ++k) {
      for (Aabb& box : scene.boxes) box = others[random.below(500)];
      EXPECT_EQ(scene.step(tells), 200u);
    }
    int steps = 1;
    while (scene.step(tells) > 0 && steps < 100) ++steps;
    EXPECT_LE(steps, 32);
  }
}

TEST_F(Resting, StepAfterAFailedStepFindsAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 100; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.step();
  const Boxes apart = scene.boxes;
  for (const std::size_t crowd : {10u, 7u}) {  // 55 and 28 pairs; the limit is 20
    for (std::size_t i = 0; i < crowd; ++i) scene.boxes[i] = apart[50];
    EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
    EXPECT_EQ(scene.finder.pairs().size(), 0u);
    scene.boxes = apart;
    scene.boxes[3] = apart[4];
    scene.step();
    scene.boxes = apart;
    scene.step();
  }
}

// Some pairs of the previous step have greater indices than any box of the failed step.
TEST_F(Resting, StepAfterAFailedStepWithFewerBoxesFindsAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 1000; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.boxes[999] = scene.boxes[5];
  scene.boxes[50] = scene.boxes[6];
  scene.step();
  scene.boxes.resize(100);
  const Boxes fewer = scene.boxes;
  for (std::size_t i = 90; i < 97; ++i) scene.boxes[i] = fewer[80];
  EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
  EXPECT_EQ(packedOf(scene.finder), nullptr);
  scene.boxes = fewer;
  scene.boxes[60] = boxAt(19.5f, 0, 0, 1);
  scene.step();
}

TEST_F(Resting, AddedOrDroppedFiltersAreNoticedAfterAPause) {
  Random random(62);
  for (const bool filtered : {false, true}) {
    Watched scene(1);
    scene.boxes = test::boxSets()[0].make(200, random);
    const std::vector<Filter> some(200, Filter{1, 2}), none;
    scene.filters = filtered ? some : none;
    scene.step();
    for (Aabb& box : scene.boxes) box.max[0] += 0.1f;
    scene.step();
    scene.filters = filtered ? none : some;
    scene.step();  // compares no boxes, because filters were added or dropped
    scene.filters = filtered ? some : none;
    for (std::size_t i = 0; i < 20; ++i) scene.boxes[i].max[1] += 0.3f;
    scene.step(true);
  }
}

// The step must also search for the boxes that have not changed since the failed step.
TEST_F(Resting, StepAfterAFailedFullSearchFindsAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 100; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.step();
  const Boxes apart = scene.boxes;
  for (std::size_t i = 0; i < 50; ++i) scene.boxes[i] = apart[i / 2];
  EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
  for (std::size_t i = 40; i < 50; ++i) scene.boxes[i] = apart[i];
  EXPECT_EQ(scene.step(), 100u);
}

TEST_F(Resting, UnwrittenCopiesAreNotCompared) {
  Random random(60);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(50, random);
  scene.step(true);
  scene.boxes.assign(50, boxAt(0, 0, 0, 0));  // all zeros, like memory that was never written
  scene.step();
}

TEST_F(Resting, CallersMayPassChangeBits) {
  Random random(59);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(500, random);
  scene.filters.assign(500, Filter{1, -1});
  scene.step(true);
  std::size_t restingSteps = 0;
  for (int k = 0; k < 60; ++k) {
    for (int change = 0; change < 3; ++change) {
      const std::uint32_t i = random.below(500);
      scene.boxes[i].max[random.below(3)] += random.uniform(-0.1f, 0.2f);
      scene.filters[random.below(500)].mask = static_cast<std::int32_t>(random.bits());
    }
    if (k % 7 == 0) {
      scene.boxes.push_back(scene.boxes[random.below(500)]);
      scene.filters.push_back({1, -1});
    }
    // Some steps get no change bits.
    restingSteps += scene.step(random.below(5) != 0) < scene.boxes.size();
  }
  EXPECT_GE(restingSteps, 55u);
  const std::vector<std::uint64_t> tooFew(1);
  EXPECT_NE(packedOf(scene.finder), nullptr);
  EXPECT_THROW(scene.finder.update(view(scene.boxes), view(scene.filters), view(tooFew)),
               std::invalid_argument);
  EXPECT_EQ(packedOf(scene.finder), nullptr);
}

// The boxes form a row in which each touches the next. So the smallest motion ends a pair, but no
// box leaves its skin. Neighbours in the row have distant indices. Data that an earlier step has
// stored for a box must have no effect.
TEST_F(Resting, CallersMayPassFewChangeBits) {
  Random random(60);
  Watched scene(1);
  const auto at = [](std::uint32_t i) { return static_cast<float>(i * 67 % 256); };
  for (std::uint32_t i = 0; i < 256; ++i) scene.boxes.push_back(boxAt(at(i), 0, 0, 0.5f));
  std::size_t changes = 0;
  for (int k = 0; k < 1500 && !HasFailure(); ++k) {
    const std::uint32_t i = random.below(256);
    scene.boxes[i] = boxAt(at(i) + random.uniform(-0.01f, 0.01f), 0, 0, 0.5f);
    EXPECT_LE(scene.step(true), k == 0 ? 256u : 1u);
    changes += scene.finder.added().size() + scene.finder.removed().size();
  }
  EXPECT_GT(changes, 500u);
}

// The pairs of a replaced object end without being reported as removed.
TEST_F(Resting, PairsOfAReplacedObjectAreGone) {
  Watched scene(1);
  scene.boxes = test::rowOfBoxes(200);
  scene.step();
  ASSERT_EQ(scene.finder.pairs().size(), 199u);
  scene.replaceObject(70);
  scene.boxes[70] = boxAt(0, 100, 0, 1);
  scene.step();
  EXPECT_TRUE(scene.finder.added().empty());
  EXPECT_TRUE(scene.finder.removed().empty());
}

/// Gives the pipeline other previous pairs, after three steps without a call to pairs().
void expectPairsFromElsewhere(Pipeline& pipeline) {
  Random random(63);
  Boxes boxes = test::boxSets()[0].make(300, random);
  const auto step = [&] {
    StepStats stats;
    pipeline.step({view(boxes), {}, {}, Options{}.maxPairs, {}}, stats);
  };
  step();
  for (std::size_t i = 3; i < 5; ++i) {
    boxes[i] = boxes[i + 1];
    step();
  }
  const Pairs all = bruteForce(boxes, {});
  ASSERT_GT(all.size(), 5u);
  const Pairs some(all.begin() + 5, all.end());
  pipeline.setPreviousPairs(view(some));
  EXPECT_EQ(toVector(pipeline.pairs()), some);
  step();
  EXPECT_EQ(toVector(pipeline.pairs()), all);
  EXPECT_EQ(toVector(pipeline.added()), Pairs(all.begin(), all.begin() + 5));
  EXPECT_EQ(pipeline.removed().size(), 0u);
}

// After steps on a GPU, the host gets the previous pairs from the GPU. Data that it has kept from
// its own last step, such as pairs, is then out of date.
TEST_F(Resting, PreviousPairsMayComeFromElsewhere) {
  expectPairsFromElsewhere(*makeHostPipeline(1, simdKernels()));
  test::forceSkin("never");
  expectPairsFromElsewhere(*makeHostPipeline(1, simdKernels()));
  expectPairsFromElsewhere(*makeHostTreePipeline(1, simdKernels()));
}

}  // namespace
}  // namespace lbvh
