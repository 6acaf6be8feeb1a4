// SPDX-License-Identifier: Zlib
// Tests steps with a skin in worlds larger than any cache. In such worlds memory is prefetched, and
// threads share all parts of a step. Results must equal the results of a finder without a skin,
// which other tests compare with brute force.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <tuple>

#include "portable.h"
#include "skin_hook.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

/// Parameters: the number of boxes, and the number of threads.
class SkinManyTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static PairFinder finderWith(const char* skin, int threads) {
    test::forceSkin(skin);
    Options options;
    options.backend = Backend::host;
    options.threads = threads;
    PairFinder finder(options);
    test::forceSkin("automatic");
    return finder;
  }

  void SetUp() override {
    const float side = std::cbrt(static_cast<float>(count_));
    for (int i = 0; i < count_; ++i)
      boxes_.push_back(boxAt(random_.uniform(0, side), random_.uniform(0, side),
                             random_.uniform(0, side), random_.uniform(0.4f, 1.2f)));
    boxes_[7] = boxAt(side / 2, -1, side / 2, 2 * side);  // a hub
  }

  void move(Aabb& box, float most) {
    for (int axis = 0; axis < 3; ++axis) {
      const float by = random_.uniform(-most, most);
      box.min[axis] += by;
      box.max[axis] += by;
    }
  }

  /// @return how many boxes the finder with a skin has searched for
  std::size_t step() {
    finder_.update(view(boxes_));
    plain_.update(view(boxes_));
    EXPECT_EQ(toVector(finder_.added()), toVector(plain_.added()));
    EXPECT_EQ(toVector(finder_.removed()), toVector(plain_.removed()));
    EXPECT_EQ(toVector(finder_.pairs()), toVector(plain_.pairs()));
    EXPECT_EQ(plain_.stats().searched, boxes_.size());
    return finder_.stats().searched;
  }

  const int count_ = std::get<0>(GetParam());
  Random random_{static_cast<std::uint32_t>(count_)};
  Boxes boxes_;
  PairFinder finder_ = finderWith("always", std::get<1>(GetParam()));
  PairFinder plain_ = finderWith("never", 1);
};

TEST_P(SkinManyTest, AllMayMoveALittle) {
  step();
  for (int k = 0; k < 6; ++k) {
    for (Aabb& box : boxes_)
      if (&box != &boxes_[7]) move(box, 0.03f);
    const std::size_t searched = step();
    if (k > 1) EXPECT_LT(searched, boxes_.size()) << "they have skins now";
  }
}

TEST_P(SkinManyTest, FewMayMoveFarAndBoxesMayBeAdded) {
  step();
  for (int k = 0; k < 6; ++k) {
    for (std::size_t i = 3; i < boxes_.size(); i += 11)
      if (i != 7) move(boxes_[i], i % 3 == 0 ? 5.0f : 0.3f);
    for (int more = 0; more < 9; ++more) boxes_.push_back(boxes_[random_.below(1000)]);
    EXPECT_LT(step(), boxes_.size() / 5);
  }
}

INSTANTIATE_TEST_SUITE_P(, SkinManyTest,
                         testing::Combine(testing::Values(20'000, 70'000), testing::Values(1, 3)),
                         [](const auto& info) {
                           return "Boxes" + std::to_string(std::get<0>(info.param)) + "Threads" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lbvh
