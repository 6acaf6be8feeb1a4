// SPDX-License-Identifier: Zlib
// Tests steps with a skin around the boxes. Pairs and deltas are exact with each set of SIMD
// instructions while boxes move, appear, vanish, change their filters or are replaced. A finder
// uses skins if that is faster.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <tuple>

#include "broadphase/host/block_query.h"
#include "simd_test.h"
#include "skin_hook.h"
#include "watched_finder.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::view;
using test::Watched;

/// Parameters: a value of GPULBVH_SIMD, and an argument of forceSkin().
class SkinTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    const auto [simd, skin] = GetParam();
    test::forceSkin(skin);
    if (std::string(simdKernels().name) != simd) GTEST_SKIP() << "not on this processor";
  }
  void TearDown() override { test::forceSkin("automatic"); }

 private:
  const test::ScopedVariable simd_{"GPULBVH_SIMD", std::get<0>(GetParam())};
};

void jitter(Boxes& boxes, float most, Random& random) {
  for (Aabb& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      const float by = random.uniform(-most, most);
      box.min[axis] += by;
      box.max[axis] += by;
    }
}

// All boxes move a little. Some jump, or become NaN, giant or inverted, and change back.
TEST_P(SkinTest, AnyKindOfBoxMayMove) {
  Random random(701);
  for (const int threads : {1, 3})
    for (const test::BoxSet& set : test::boxSets()) {
      SCOPED_TRACE(set.name);
      Watched scene(threads);
      scene.boxes = set.make(400, random);
      for (int k = 0; k < 25; ++k) {
        jitter(scene.boxes, k % 9 == 0 ? 1.0f : 0.02f, random);
        const Boxes others = set.make(400, random);
        for (std::uint32_t move = random.below(k % 5 == 0 ? 200 : 4); move > 0; --move) {
          const std::uint32_t i = random.below(400);
          scene.boxes[i] = others[i];
        }
        scene.step(k % 4 != 3, k % 3 != 1);
        ASSERT_FALSE(HasFailure()) << "step " << k;
      }
    }
}

TEST_P(SkinTest, BoxesAndFiltersMayBeAddedAndRemoved) {
  Random random(702);
  const auto anyFilter = [&] {
    return Filter{1 << random.below(4), static_cast<std::int32_t>(random.bits())};
  };
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(500, random);
  for (int k = 0; k < 60; ++k) {
    jitter(scene.boxes, 0.02f, random);
    const std::size_t change = random.below(8);
    const Boxes more = test::boxSets()[0].make(8, random);
    if (random.below(3) == 0)
      scene.boxes.insert(scene.boxes.end(), more.begin(), more.begin() + random.below(8));
    else if (random.below(2) == 0)
      scene.boxes.resize(scene.boxes.size() - change);
    if (k % 20 == 10) scene.filters.assign(scene.boxes.size(), anyFilter());
    if (k % 20 == 0) scene.filters.clear();
    if (!scene.filters.empty()) {
      scene.filters.resize(scene.boxes.size(), anyFilter());
      for (std::uint32_t i = random.below(4); i > 0; --i)
        scene.filters[random.below(300)] = anyFilter();
    }
    for (std::uint32_t i = random.below(4); k > 0 && i > 0; --i) {
      const std::uint32_t box = random.below(300);
      scene.replaceObject(box);
      if (random.below(2) == 0) scene.boxes[box] = more[i];
    }
    scene.step(k % 3 != 0, random.below(2) == 0);
    ASSERT_FALSE(HasFailure()) << "step " << k;
  }
}

// Objects are replaced by others with equal boxes, so `changed` has no bits for them. Their
// neighbours move within their grown boxes.
TEST_P(SkinTest, ObjectsMayBeReplacedWithoutChangeBits) {
  Random random(707);
  Watched scene(1);
  for (int i = 0; i < 300; ++i)
    scene.boxes.push_back(boxAt(random.uniform(0, 6), random.uniform(0, 6), 0, 0.6f));
  for (int k = 0; k < 40; ++k) {
    Boxes moved = scene.boxes;
    jitter(moved, 0.02f, random);
    for (std::uint32_t i = 0; i < 300; ++i)
      if (random.below(3) == 0) scene.boxes[i] = moved[i];
    for (std::uint32_t i = random.below(8); k > 0 && i > 0; --i)
      scene.replaceObject(random.below(300));
    scene.step(true, random.below(2) == 0);
    ASSERT_FALSE(HasFailure()) << "step " << k;
  }
}

// Grown boxes may have more pairs than maxPairs. The limit applies only to pairs of the boxes
// themselves.
TEST_P(SkinTest, PairLimitDoesNotCountPairsOfGrownBoxes) {
  for (const bool tells : {false, true}) {
    Watched scene(1, 20);
    for (int i = 0; i < 100; ++i) scene.boxes.push_back(boxAt(2.01f * float(i), 0, 0, 1));
    for (int k = 0; k < 7; ++k) {
      scene.boxes[50].max[0] += 0.001f;
      scene.step(tells);
    }
    const Boxes apart = scene.boxes;
    for (std::size_t i = 0; i < 10; ++i) scene.boxes[i] = apart[50];
    EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
    scene.boxes = apart;
    scene.boxes[3] = apart[4];
    scene.step(tells);
    scene.step(tells);
  }
}

// A box that moves in the failed step and then moves back has no bit in the next step's `changed`.
TEST_P(SkinTest, BoxesThatMovedOnlyInAFailedStepKeepTheirPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 300; ++i) scene.boxes.push_back(boxAt(3.0f * float(i), 0, 0, 1));
  scene.boxes[7] = boxAt(24.5f, 0, 0, 1);
  for (int k = 0; k < 7; ++k) scene.step(true);
  const Boxes before = scene.boxes;
  for (std::size_t i = 0; i < 10; ++i) scene.boxes[i] = boxAt(2000, 0, 0, 1);
  const std::vector<std::uint64_t> all(5, ~std::uint64_t{0});
  EXPECT_THROW(scene.finder.update(view(scene.boxes), {}, view(all)), std::length_error);
  scene.boxes = before;
  scene.boxes[100] = boxAt(304, 0, 0, 1);
  scene.step(true);
}

/// The large boxes, then a layer of side * side small ones.
Boxes layerUnder(int side, const Boxes& large) {
  Boxes boxes = large;
  for (int i = 0; i < side * side; ++i)
    boxes.push_back(boxAt(1.2f * float(i % side), 0, 1.2f * float(i / side), 0.5f));
  return boxes;
}

// The scene has an infinite plane, and three grounds with too many candidates to list (hubs).
TEST_P(SkinTest, LargeBoxesMayMoveComeAndGo) {
  Random random(705);
  const Aabb ground{{-9, -1, -9}, {99, 0, 99}},
      plane{{-INFINITY, -INFINITY, -INFINITY}, {INFINITY, 0, INFINITY}};
  Watched scene(1);
  scene.boxes = layerUnder(34, {ground, plane, ground});
  scene.boxes.push_back(ground);
  scene.filters.assign(scene.boxes.size(), Filter{1, -1});
  const std::uint32_t last = static_cast<std::uint32_t>(scene.boxes.size()) - 1;
  for (int k = 0; k < 40; ++k) {
    for (std::uint32_t i = 3; i < last; ++i)
      if (random.below(2) == 0) scene.boxes[i].min[1] += random.uniform(-0.03f, 0.03f);
    for (int move = 0; move < 4; ++move) {
      const std::uint32_t i = 3 + random.below(last - 3);
      scene.boxes[i] = boxAt(1.2f * float(random.below(34)), random.uniform(-2, 2), 9, 0.5f);
      if (random.below(4) == 0) scene.boxes[i].max[0] = NAN;
    }
    if (k % 8 == 3) scene.boxes[last].min[0] += 30;
    if (k % 8 == 5) scene.replaceObject(0);
    if (k % 8 == 7) scene.filters[2].mask = static_cast<std::int32_t>(random.bits());
    if (k % 16 == 9) scene.boxes[0].max[1] += 0.1f;
    scene.step(k % 5 != 4, k % 4 != 1);
    ASSERT_FALSE(HasFailure()) << "step " << k;
  }
}

// First, a box has about 1,024 candidates, the maximum for a box that is not a hub. Then there are
// too many hubs. Finally, all boxes gather at the origin.
TEST_P(SkinTest, BoxesMayHaveAnyNumberOfCandidates) {
  Random random(706);
  for (const int more : {-1, 0, 1, 2}) {
    Watched scene(1);
    const float edge = 1.2f * 32 - 0.6f;
    scene.boxes = layerUnder(32, {{{-1, 0, -1}, {edge, 1, edge}}});
    for (int i = 0; i < more; ++i) scene.boxes.push_back(boxAt(9, 0, 9, 0.5f));
    if (more < 0) scene.boxes.pop_back();
    for (int k = 0; k < 6; ++k) {
      jitter(scene.boxes, 0.002f, random);
      scene.step(k > 3);
    }
  }
  const Boxes large(70, {{-1, 0, -1}, {99, 1, 99}});
  Watched crowded(1);
  crowded.boxes = layerUnder(32, large);
  for (int k = 0; k < 4; ++k) {
    jitter(crowded.boxes, 0.001f, random);
    crowded.step(k > 1);
  }
  Watched gathering(1);
  gathering.boxes = layerUnder(34, {});
  for (int k = 0; k < 24; ++k) {
    for (Aabb& box : gathering.boxes)
      for (int axis = 0; axis < 3; ++axis) {
        const float by = -0.1f * (box.min[axis] + box.max[axis]);
        box.min[axis] += by;
        box.max[axis] += by;
      }
    gathering.step(k % 2 == 0, k % 3 != 0);
  }
}

// The number of hubs is slightly below or slightly above the maximum of 64. Boxes leave the hubs
// and return.
TEST_P(SkinTest, ManyLargeBoxesMayRest) {
  for (const std::size_t large : {60u, 70u}) {
    Watched scene(1);
    scene.boxes = layerUnder(32, Boxes(large, {{-1, 0, -1}, {99, 1, 99}}));
    const Boxes start = scene.boxes;
    for (std::size_t k = 0; k < 7; ++k) {
      scene.boxes[large + k] = boxAt(1.2f * float(k), 9, 0, 0.5f);
      if (k % 2 == 1) scene.boxes[large + k - 1] = start[large + k - 1];
      scene.step(k > 3, k % 3 == 0);
      ASSERT_FALSE(HasFailure()) << large << ", step " << k;
    }
  }
}

// Each inverted box overlaps the box around it by less than a skin.
TEST_P(SkinTest, InvertedBoxesMayMove) {
  Watched scene(1);
  for (int i = 0; i < 20; ++i) {
    scene.boxes.push_back(boxAt(4.0f * float(i), 0, 0, 1.05f));
    scene.boxes.push_back(boxAt(4.0f * float(i), 9, 0, -1));
  }
  for (std::size_t k = 0; k < 20; ++k) {
    scene.boxes[2 * k + 1] = boxAt(4.0f * float(k), 0, 0, -1);
    scene.step(k % 4 != 3, k % 3 != 1);
    ASSERT_FALSE(HasFailure()) << "step " << k;
  }
}

// Some boxes of each kind become boxes of every other kind, while most boxes rest.
TEST_P(SkinTest, BoxesMayChangeTheirKind) {
  const float inf = INFINITY;
  const Boxes kinds{boxAt(3, 0, 0, 1),
                    {{-inf, -inf, -inf}, {inf, inf, inf}},
                    {{NAN, 0, 0}, {9, 1, 1}},
                    {{-inf, -1, -1}, {9, 1, 1}},
                    {{-1, -1, -1}, {inf, 1, 1}}};
  const std::size_t count = kinds.size();
  Watched scene(1);
  for (int i = 0; i < 300; ++i) scene.boxes.push_back(boxAt(1.5f * float(i), 0, 0, 1));
  for (const bool tells : {false, true})
    for (std::size_t k = 0; k < count * count; ++k)
      for (const std::size_t kind : {k / count, k % count}) {
        for (std::size_t i = 0; i < 3; ++i) scene.boxes[100 * i] = kinds[(kind + i) % count];
        scene.step(tells);
        ASSERT_FALSE(HasFailure()) << k << " to " << kind;
        std::vector<int> visits(300);
        queryPacked(
            *packedOf(scene.finder), [](const Aabb&) { return true; },
            [&](std::uint32_t box) { ++visits[box]; });
        for (std::size_t i = 0; i < 300; ++i)
          ASSERT_EQ(visits[i], classify(scene.boxes[i]) == BoxClass::nan ? 0 : 1) << i;
      }
}

// Each step adds one box. New boxes are first kept outside the blocks, and later packed with the
// others.
TEST_P(SkinTest, BoxesMayComeOneByOne) {
  Random random(707);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(300, random);
  const Boxes more = test::boxSets()[0].make(160, random);
  for (const Aabb& box : more) {
    scene.boxes.push_back(box);
    if (random.below(8) == 0) scene.boxes.back().min[1] = NAN;
    if (random.below(4) == 0) scene.boxes[random.below(300)].max[0] = NAN;
    scene.step(random.below(3) != 0, random.below(2) == 0);
    ASSERT_FALSE(HasFailure()) << scene.boxes.size();
  }
}

TEST_P(SkinTest, PackedScenesHoldAllBoxes) {
  Random random(703);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  for (int k = 0; k < 12; ++k) {
    jitter(scene.boxes, 0.02f, random);
    scene.step();
    std::vector<int> visits(400);
    queryPacked(
        *packedOf(scene.finder), [](const Aabb&) { return true; },
        [&](std::uint32_t box) { ++visits[box]; });
    for (std::size_t i = 0; i < 400; ++i)
      ASSERT_EQ(visits[i], classify(scene.boxes[i]) == BoxClass::nan ? 0 : 1) << i;
    const Aabb around = scene.boxes[random.below(400)];
    std::vector<char> found(400);
    queryPacked(
        *packedOf(scene.finder), [&](const Aabb& bounds) { return overlap(bounds, around); },
        [&](std::uint32_t box) { found[box] = 1; });
    for (std::size_t i = 0; i < 400; ++i)
      if (overlap(scene.boxes[i], around)) ASSERT_TRUE(found[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, SkinTest,
                         testing::Combine(test::everySimd(),
                                          testing::Values("always", "alternating", "never",
                                                          "automatic")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

/// The total number of boxes that the steps search for. In each step every `movingEvery`-th box
/// jitters by up to six times `most`.
std::size_t searchedIn(int steps, float most, int movingEvery = 1) {
  Random random(704);
  Watched scene(1);
  for (int i = 0; i < 512; ++i)
    scene.boxes.push_back(boxAt(float(i % 8), float(i / 8 % 8), float(i / 64), 0.52f));
  const Boxes start = scene.boxes;
  std::size_t searched = 0;
  for (int k = 0; k < steps; ++k) {
    Boxes moved = start;
    jitter(moved, most * static_cast<float>(k % 7), random);
    for (std::size_t i = 0; i < 512; i += static_cast<std::size_t>(movingEvery))
      scene.boxes[i] = moved[i];
    searched += scene.step(true);
  }
  return searched;
}

// Even with the highest limit on candidates (16,384), more than 64 boxes are hubs. So no step keeps
// its candidates.
TEST(Skin, MoreLargeBoxesThanHubsAreAllowedMayMove) {
  Random random(719);
  test::forceSkin("always");
  Watched scene(1);
  scene.boxes = layerUnder(129, Boxes(66, {{-1, 0, -1}, {999, 1, 999}}));
  for (int k = 0; k < 3; ++k) {
    jitter(scene.boxes, 0.001f, random);
    EXPECT_EQ(scene.step(k > 1), scene.boxes.size());
  }
  test::forceSkin("automatic");
}

TEST(Skin, SavesSearchesIfBoxesMoveLittle) {
  EXPECT_LE(searchedIn(100, 0.002f), 15u * 512);
  EXPECT_GE(searchedIn(100, 0.2f), 95u * 512) << "all move much";
  EXPECT_LE(searchedIn(100, 0.002f, 30), 12u * 512) << "most rest";
}

}  // namespace
}  // namespace lbvh
