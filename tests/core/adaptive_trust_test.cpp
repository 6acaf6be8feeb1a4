// SPDX-License-Identifier: Zlib
// Tests a GPU that finds wrong pairs: when this is noticed, what is reported, and which pairs the
// program gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "adaptive_fixture.h"

namespace lbvh {
namespace {

using test::Pairs;
using test::toVector;
using test::view;

/// How a test controls its chooser.
struct Asked {
  Where serving = Where::gpu;
  bool wantsTrial = false;
  int tried = 0;
};

class AsAsked final : public SpaceChooser {
 public:
  explicit AsAsked(Asked& asked) : asked_(asked) {}
  Where next() const override { return asked_.serving; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return asked_.wantsTrial; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, const TrialFigures&) noexcept override { ++asked_.tried; }
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override { return "as requested"; }

 private:
  Asked& asked_;
};

/// A program that knows only which pairs were reported as added and as removed.
class AdaptiveTrust : public test::Adaptive {
 protected:
  AdaptiveTrust() {
    chosenBy(std::make_unique<AsAsked>(asked));
    boxes = test::boxSets()[0].make(200, random);
  }

  /// @return whether the program knows the right pairs
  bool stepAndLook() {
    for (int change = 0; change < 30; ++change) {
      std::size_t i = random.below(200);
      if (i == 7) i = 8;  // box 7 rests, so that its pairs stay wrong
      boxes[i] = boxes[random.below(200)];
    }
    std::vector<std::uint8_t> removedObjects(random.below(3) == 0 ? 200 : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    StepStats stats;
    const StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    made->step(input, stats);
    undisturbed->step(input, stats);
    std::erase_if(told, [&](const auto& pair) {
      return involvesRemoved({pair.first, pair.second}, view(removedObjects));
    });
    for (const Pair pair : made->removed()) told.erase({pair.first, pair.second});
    for (const Pair pair : made->added()) told.insert({pair.first, pair.second});
    Pairs known;
    for (const auto& [first, second] : told) known.push_back({first, second});
    const Pairs right = toVector(undisturbed->pairs());
    return known == right && (known.size() % 4 != 0 || toVector(made->pairs()) == right);
  }

  /// Runs steps until one trial has ended. Then no other trial starts.
  void tryOnce() {
    asked.wantsTrial = true;
    for (const int before = asked.tried; asked.tried == before;) ASSERT_TRUE(stepAndLook());
    asked.wantsTrial = false;
  }
  bool isNoticed() const { return made->info()->spaceReason == SpaceReason::failed; }
  void waitForTrials() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

  Asked asked;
  std::set<std::pair<std::uint32_t, std::uint32_t>> told;
};

TEST_F(AdaptiveTrust, WrongTrialChangesNoResultAndEndsUseOfTheGpu) {
  asked.serving = Where::host;
  tryOnce();
  control.isWrong = true;
  asked.wantsTrial = true;
  while (!isNoticed()) ASSERT_TRUE(stepAndLook());
  EXPECT_EQ(reason().rfind("found wrong pairs in step ", 0), 0u) << reason();
  EXPECT_NE(reason().find(", but the host found "), std::string::npos) << reason();
  control.isWrong = false;
  asked.serving = Where::gpu;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(stepAndLook());
    ASSERT_EQ(backend(), "host");
  }
}

// From some step on, all steps of the GPU are wrong. The trial of the first wrong step shows that.
// The step that notices the error corrects all pairs that were reported wrongly.
TEST_F(AdaptiveTrust, WrongStepsOfTheGpuAreNoticedAndCorrected) {
  tryOnce();
  EXPECT_EQ(backend(), "flaky");
  control.isWrong = true;
  asked.wantsTrial = true;
  int wrong = 0;
  while (!isNoticed()) {
    const bool isRight = stepAndLook();
    EXPECT_EQ(isRight, isNoticed());
    wrong += !isRight;
    waitForTrials();
  }
  EXPECT_GE(wrong, 1);
  EXPECT_LE(wrong, 3) << "the trial of the first wrong step shows it";
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stepAndLook()) << i;
    ASSERT_EQ(backend(), "host");
  }
  chosenBy(std::make_unique<AsAsked>(asked));  // another finder of the process
  told.clear();
  const int before = control.makes;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(stepAndLook());
  EXPECT_EQ(control.makes, before);
  EXPECT_EQ(reason(), "the GPU found wrong pairs for another finder of this process");
}

// One wrong step among many is noticed if it is the step that is checked. Otherwise the next delta
// corrects it, because a step finds all pairs again, except those of resting boxes.
TEST_F(AdaptiveTrust, OneWrongStepIsNoticedIfItIsChecked) {
  for (const bool isChecked : {false, true}) {
    tryOnce();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(stepAndLook()) << i;
    control.isWrong = true;
    asked.wantsTrial = isChecked;
    EXPECT_FALSE(stepAndLook());
    control.isWrong = false;
    asked.wantsTrial = false;
    waitForTrials();
    ASSERT_TRUE(stepAndLook());
    EXPECT_EQ(isNoticed(), isChecked);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(stepAndLook()) << i;
  }
}

// A faulty GPU may return an invalid list of pairs.
TEST_F(AdaptiveTrust, InvalidListDoesNoHarm) {
  tryOnce();
  control.isGarbage = true;
  asked.wantsTrial = true;
  while (!isNoticed()) {
    stepAndLook();
    for (const Pair pair : made->removed()) {
      EXPECT_LT(pair.first, pair.second);
      EXPECT_LT(pair.second, boxes.size());
    }
    waitForTrials();
  }
  for (int i = 0; i < 20; ++i) {
    stepAndLook();
    EXPECT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
  }
}

}  // namespace
}  // namespace lbvh
