// SPDX-License-Identifier: Zlib
// Tests steps with a skin in which hubs move. A hub is a box with more candidates than a row may
// hold (candidate_rows.h). Pairs and deltas are exact, whatever hubs and their neighbours do.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "portable.h"
#include "skin_hook.h"
#include "support.h"
#include "watched_finder.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::Watched;

constexpr std::uint32_t kHubs = 4;
constexpr int kSide = 36;  // 1,296 boxes; each hub overlaps most of them

/// Hubs that overlap a layer of boxes, and each other.
Boxes platforms() {
  Boxes boxes;
  for (std::uint32_t k = 0; k < kHubs; ++k) {
    const float at = 0.4f * static_cast<float>(k);
    boxes.push_back({{at - 1, 0.3f, at - 1}, {at + 21, 0.6f + at, at + 21}});
  }
  for (int i = 0; i < kSide * kSide; ++i)
    boxes.push_back(
        boxAt(0.6f * float(i % kSide), 0, 0.6f * float(i / kSide), 0.4f + 0.1f * float(i % 3)));
  return boxes;
}

void shift(Aabb& box, float x, float y, float z) {
  const float by[3] = {x, y, z};
  for (int axis = 0; axis < 3; ++axis) {
    box.min[axis] += by[axis];
    box.max[axis] += by[axis];
  }
}

/// Parameters: an argument of forceSkin(), and the number of threads.
class SkinHubTest : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  void SetUp() override { test::forceSkin(std::get<0>(GetParam())); }
  void TearDown() override { test::forceSkin("automatic"); }

  void moveHub(Watched& scene, std::uint32_t hub) {
    Aabb& box = scene.boxes[hub];
    const auto little = [&] { return random_.uniform(-0.2f, 0.2f); };
    switch (random_.below(8)) {
      case 0:  // away from all boxes, or back
        return shift(box, 0, box.min[1] < 50 ? 100.0f : -100.0f, 0);
      case 1:
        box.max[0] = std::isnan(box.max[0]) ? box.min[0] + 20 : NAN;
        return;
      case 2:
        return scene.replaceObject(hub);
      case 3:
        if (!scene.filters.empty())
          scene.filters[hub].mask = static_cast<std::int32_t>(random_.bits());
        return;
      case 4:  // the hub then overlaps only some of the boxes
        box.max[2] = box.min[2] + random_.uniform(5, 25);
        return;
      default:
        return shift(box, little(), little(), little());
    }
  }

  void moveOthers(Watched& scene) {
    for (int k = 0; k < 30; ++k) {
      const std::uint32_t i = kHubs + random_.below(kSide * kSide);
      Aabb& box = scene.boxes[i];
      if (k < 20)
        shift(box, 0, random_.uniform(-0.02f, 0.02f), 0);
      else
        shift(box, random_.uniform(-2, 2), random_.uniform(-0.5f, 0.5f), random_.uniform(-2, 2));
      if (k == 29) scene.replaceObject(i);
      if (k == 28 && !scene.filters.empty()) scene.filters[i].group = 1 << random_.below(4);
    }
  }

  Random random_{711};
};

TEST_P(SkinHubTest, HubsMayMoveAmongTheirNeighbours) {
  for (const bool isFiltered : {false, true}) {
    Watched scene(std::get<1>(GetParam()));
    scene.boxes = platforms();
    if (isFiltered) scene.filters.assign(scene.boxes.size(), Filter{1, -1});
    for (int k = 0; k < 5; ++k) scene.step();
    std::size_t few = 0;
    for (int k = 0; k < 60; ++k) {
      for (std::uint32_t moves = random_.below(4); moves > 0; --moves)
        moveHub(scene, random_.below(kHubs));
      if (k % 3 != 0) moveOthers(scene);
      if (k % 16 == 9) {
        scene.boxes.push_back(boxAt(5, 0.4f, 5, 0.5f));
        if (isFiltered) scene.filters.push_back({1, -1});
      }
      few += scene.step(k % 5 < 3, k % 4 == 0) < 100;
      ASSERT_FALSE(HasFailure()) << "step " << k;
    }
    EXPECT_GE(few, 45u) << "hubs are searched for alone";
  }
}

INSTANTIATE_TEST_SUITE_P(, SkinHubTest,
                         testing::Combine(testing::Values("always", "automatic"),
                                          testing::Values(1, 3)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "Threads" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lbvh
