// SPDX-License-Identifier: Zlib
// Tests steps in which boxes move too little to change a pair. The candidates of such boxes are not
// tested. No change may be missed, not even one in the last bit of a coordinate.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>

#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/step.h"
#include "portable.h"
#include "skin_hook.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

constexpr std::uint32_t kBoxes = 500;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const SimdKernels& own = simdKernels();
std::atomic<std::uint64_t> candidatesTested{0};

SimdKernels countingKernels() {
  SimdKernels kernels = own;
  kernels.findFlips = [](const Aabb* boxes, const Aabb& box, const std::uint32_t* candidates,
                         std::uint32_t count) {
    candidatesTested += count;
    return own.findFlips(boxes, box, candidates, count);
  };
  return kernels;
}

/// Boxes that jitter around the boxes of `places_`. Some of the places change. Parameters: the
/// distance from the origin, and the number of threads.
class SkinReachTest : public testing::TestWithParam<std::tuple<float, int>> {
 protected:
  void SetUp() override {
    test::forceSkin("always");
    pipeline_ = makeHostPipeline(std::get<1>(GetParam()), kernels_);
    test::forceSkin("automatic");
    for (std::uint32_t i = 0; i < kBoxes; ++i) places_.push_back(anywhere());
    boxes_ = places_;
  }

  /// A random box in a scene of `boxes` boxes.
  Aabb anywhere(float boxes = 500) {
    const float side = 1.1f * std::cbrt(boxes), at = std::get<0>(GetParam());
    return boxAt(at + random_.uniform(0, side), random_.uniform(0, side), random_.uniform(0, side),
                 random_.uniform(0.3f, 0.9f));
  }

  void tremble(float most) {
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      for (int axis = 0; axis < 3; ++axis) {
        const float by = random_.uniform(-most, most);
        boxes_[i].min[axis] = places_[i].min[axis] + by;
        boxes_[i].max[axis] = places_[i].max[axis] + (i % 2 == 0 ? by : -by);
      }
  }

  /// Makes one box touch another exactly, or miss it by the smallest gap.
  void touch() {
    const std::size_t a = random_.below(kBoxes), b = random_.below(kBoxes);
    if (a == b) return;
    const auto axis = static_cast<int>(random_.below(3));
    Aabb& box = boxes_[a];
    box = boxes_[b];
    box.min[axis] = boxes_[b].max[axis];
    box.max[axis] = box.min[axis] + 1;
    if (random_.below(2) == 0) box.min[axis] = std::nextafter(box.min[axis], box.max[axis]);
    places_[a] = box;
  }

  /// @return how many candidates were tested
  std::uint64_t step() {
    candidatesTested = 0;
    StepStats stats;
    pipeline_->step({view(boxes_), view(filters_), {}, Options{}.maxPairs, {}}, stats);
    const Pairs now = test::bruteForce(boxes_, filters_);
    Pairs added, removed;
    std::set_difference(now.begin(), now.end(), pairs_.begin(), pairs_.end(),
                        std::back_inserter(added));
    std::set_difference(pairs_.begin(), pairs_.end(), now.begin(), now.end(),
                        std::back_inserter(removed));
    EXPECT_EQ(toVector(pipeline_->added()), added);
    EXPECT_EQ(toVector(pipeline_->removed()), removed);
    if (random_.below(4) == 0) EXPECT_EQ(toVector(pipeline_->pairs()), now);
    EXPECT_EQ(stats.pairs, now.size());
    changes_ += added.size() + removed.size();
    pairs_ = now;
    return candidatesTested;
  }

  const SimdKernels kernels_ = countingKernels();
  std::unique_ptr<Pipeline> pipeline_;
  Random random_{7};
  Boxes places_, boxes_;
  std::vector<Filter> filters_;
  Pairs pairs_;
  std::size_t changes_ = 0;
};

TEST_P(SkinReachTest, BoxesThatMoveTooLittleForAChangeAreNotTested) {
  if (std::get<0>(GetParam()) > 1e5f) return;  // floats are so coarse there that many boxes touch
  std::uint64_t tested = 0;
  for (int k = 0; k < 40; ++k) {
    tremble(0.0005f);
    const std::uint64_t now = step();
    if (k >= 30) tested += now;
  }
  EXPECT_LT(tested, 10u * kBoxes) << "each has about five candidates";
}

TEST_P(SkinReachTest, FindsEachChange) {
  for (int k = 0; k < test::manySteps(300) && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    tremble(k % 50 < 40 ? 0.002f : 0.02f);
    if (k % 3 == 0) touch();
    if (k % 7 == 0) places_[random_.below(kBoxes)] = anywhere();
    // Some boxes drift slowly until they overlap others.
    for (std::size_t i = 5; i < places_.size(); i += 40) {
      places_[i].min[1] += 0.004f;
      places_[i].max[1] += 0.004f;
    }
    step();
  }
  EXPECT_GT(changes_, 300u);
}

TEST_P(SkinReachTest, OtherBoxesMayComeAndChange) {
  const float at = std::get<0>(GetParam());
  filters_.assign(kBoxes, Filter{1, -1});
  for (int k = 0; k < 150 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    tremble(0.001f);
    const std::size_t any = random_.below(kBoxes);
    if (k % 5 == 1) filters_[any].group ^= 3;
    if (k % 5 == 2) (k % 2 == 0 ? boxes_[any].min : boxes_[any].max)[k % 3] = std::nanf("");
    if (k % 5 == 3) std::swap(boxes_[any].min[1], boxes_[any].max[1]);
    if (k % 11 == 5) boxes_[any].max[2] = 1e30f;
    if (k % 5 == 4)
      boxes_[any].max[2] =
          -kInfinity;  // inverted; by comparison of corners it is inside its grown box
    if (k % 30 == 20) {
      places_.push_back(anywhere());
      filters_.push_back({1, -1});
      boxes_.push_back(places_.back());
    }
    // A hub that alternately rests and moves.
    const float y = k % 50 < 20 ? 0 : 0.01f * static_cast<float>(k);
    boxes_[3] = places_[3] = {{at - 20, y - 2, -1e6f}, {at + 20, y + 5, 1e6f}};
    step();
  }
  EXPECT_GT(changes_, 300u);
}

TEST_P(SkinReachTest, BoxWithoutCandidatesMayFlyToOthers) {
  places_.clear();
  for (int i = 0; i < 40; ++i)
    places_.push_back(boxAt(std::get<0>(GetParam()) + 5.0f * static_cast<float>(i), 0, 0, 0.5f));
  boxes_ = places_;
  for (int k = 0; k < 400 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    tremble(0.001f);
    places_[0].min[0] += 0.0625f;
    places_[0].max[0] += 0.0625f;
    step();
  }
  EXPECT_GT(changes_, 8u);
}

// Three events invalidate reaches: two searches for the pairs of all boxes, and a move of a hub. In
// each of them boxes begin to touch exactly, so that the next steps show which boxes are tested.
TEST_P(SkinReachTest, HubsMayMoveAndAllBoxesMayBeSearchedForAgain) {
  places_.clear();
  while (places_.size() < 1300) places_.push_back(anywhere(1300));
  boxes_ = places_;
  const auto growUpTo = [this](float top) {  // box 0 becomes a hub
    const float at = std::get<0>(GetParam());
    places_[0] = {{at - 20, -20, -20}, {at + 40, top, 40}};
  };
  for (int k = 0; k < 130 && !HasFailure(); ++k) {
    SCOPED_TRACE(k);
    tremble(0.0005f);
    for (int touches = 0; touches < 20 && (k == 39 || k == 99); ++touches) touch();
    if (k == 39) growUpTo(10.8f);  // a row is too long, so the search covers all boxes
    if (k == 69) growUpTo(places_[1 + random_.below(1000)].min[1]);
    if (k == 99) {  // all boxes are searched for, because there are fewer than before
      places_.pop_back();
      boxes_.pop_back();
    }
    if (k >= 39) boxes_[0] = places_[0];
    const std::uint64_t tested = step();
    if (k > 30 && k % 30 == 8 && std::get<0>(GetParam()) < 1e5f)
      EXPECT_LT(tested, 3000u) << "without reaches ten thousand are tested";
  }
}

INSTANTIATE_TEST_SUITE_P(, SkinReachTest,
                         testing::Combine(testing::Values(0.0f, 3000.0f, 200'000.0f),
                                          testing::Values(1, 3)),
                         [](const auto& info) {
                           return "At" + std::to_string(int(std::get<0>(info.param))) + "Threads" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lbvh
