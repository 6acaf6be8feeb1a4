// SPDX-License-Identifier: Zlib
// Tests a GPU that finds wrong pairs: when this is noticed, what is reported, and which pairs the
// program gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "adaptive_fixture.h"

namespace lbvh {
namespace {

using test::AsAsked;
using test::Asked;
using test::Fail;
using test::Pairs;
using test::toVector;
using test::view;

/// A program that knows only which pairs were reported as added and as removed.
class AdaptiveTrust : public test::Adaptive {
 protected:
  AdaptiveTrust() {
    chosenBy(std::make_unique<AsAsked>(asked));
    boxes = test::boxSets()[0].make(200, random);
    boxes[6] = boxes[7];  // a pair that every wrong step misses
  }

  /// @return whether the program knows the right pairs
  bool stepAndLook() {
    // Boxes 0 to 7 rest, so the pair (6, 7) stays wrong.
    for (int change = 0; change < 30; ++change)
      boxes[8 + random.below(192)] = boxes[random.below(200)];
    std::vector<std::uint8_t> removedObjects(random.below(3) == 0 ? 200 : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    StepStats stats;
    const StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    ++steps;
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

  /// Runs steps until one trial has ended. By then, no other trial has begun.
  void tryOnce() {
    asked.wantsTrial = true;
    while (asked.wantsTrial) ASSERT_TRUE(stepAndLook());
  }
  bool isNoticed() const { return made->info()->spaceReason == SpaceReason::failed; }

  Asked asked;
  int steps = 0;
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

// From a certain step on, all steps of the GPU are wrong. The trial that checks the first wrong
// step detects this. The step that notices the error corrects all pairs that were reported wrongly.
TEST_F(AdaptiveTrust, WrongStepsOfTheGpuAreNoticedAndCorrected) {
  tryOnce();
  EXPECT_EQ(backend(), "flaky");
  control.isWrong = true;
  asked.wantsTrial = true;
  const std::string first = std::to_string(steps + 1);
  while (!isNoticed()) {
    const bool isRight = stepAndLook();
    ASSERT_EQ(isRight, isNoticed());
    if (!isRight) ASSERT_EQ(reason(), "as requested");
  }
  EXPECT_EQ(reason().rfind("found wrong pairs in step " + first + ":", 0), 0u) << reason();
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

// Trials end while the next step runs on the GPU. That step's pairs are wrong, too. The step after
// it corrects them, and reports the error.
TEST_F(AdaptiveTrust, VerdictIsReportedWhenThePairsAreCorrected) {
  tryOnce();
  control.isWrong = asked.wantsTrial = true;
  control.delayMs = 50;
  while (!isNoticed()) {
    const bool isRight = stepAndLook();
    ASSERT_EQ(isRight, isNoticed());
    if (!isRight) ASSERT_EQ(reason(), "as requested");
  }
  EXPECT_EQ(reason().rfind("found wrong pairs in step ", 0), 0u) << reason();
}

TEST_F(AdaptiveTrust, GpuThatWasWrongIsDestroyed) {
  tryOnce();
  EXPECT_EQ(control.alive, 1);
  gpuWasWrong = true;
  const std::size_t before = made->memoryBytes();
  for (int i = 0; i < 10000 && control.alive > 0; ++i) ASSERT_TRUE(stepAndLook());
  EXPECT_EQ(control.alive, 0);
  EXPECT_LT(made->memoryBytes(), before);
}

// Boxes 6 and 7 rest, so the host finds their pair both before and after the step. Only a
// comparison with the GPU's pairs shows that this pair must be added.
TEST_F(AdaptiveTrust, ReturnToTheHostCorrectsWrongPairs) {
  tryOnce();
  control.isWrong = true;
  EXPECT_FALSE(stepAndLook());
  asked.serving = Where::host;
  EXPECT_TRUE(stepAndLook());
  EXPECT_EQ(made->info()->losses, 0u);
}

// The pairs that a lost GPU found are unknown, so no delta can correct them. A program that has
// followed the deltas must compare its pairs with the list of all pairs.
TEST_F(AdaptiveTrust, TellsWhenPairsWereLostWithTheGpu) {
  tryOnce();
  control.isWrong = true;
  EXPECT_FALSE(stepAndLook());
  control.fail = Fail::forGood;
  stepAndLook();
  EXPECT_EQ(made->info()->losses, 1u);
  told.clear();
  for (const Pair pair : made->pairs()) told.insert({pair.first, pair.second});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(stepAndLook()) << i;
  EXPECT_EQ(made->info()->losses, 1u);
}

// The pairs cannot be copied when the host takes over.
TEST_F(AdaptiveTrust, VerdictStaysTheReasonIfTheGpuThenFails) {
  tryOnce();
  control.isWrong = asked.wantsTrial = true;
  while (!gpuWasWrong) stepAndLook();
  control.failsFetch = Fail::before;
  stepAndLook();
  EXPECT_EQ(reason().rfind("found wrong pairs in step ", 0), 0u) << reason();
}

TEST_F(AdaptiveTrust, OlderFailureDoesNotHideTheVerdictOnAnotherFinder) {
  tryOnce();
  control.fail = Fail::before;
  EXPECT_TRUE(stepAndLook());
  EXPECT_EQ(reason(), "failed before");
  gpuWasWrong = true;
  EXPECT_TRUE(stepAndLook());
  EXPECT_EQ(reason(), "the GPU found wrong pairs for another finder of this process");
}

// A single wrong step is noticed if that step is checked. Otherwise the next delta corrects it,
// because each step finds all pairs again, except pairs of resting boxes.
TEST_F(AdaptiveTrust, OneWrongStepIsNoticedIfItIsChecked) {
  for (const bool isChecked : {false, true}) {
    tryOnce();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(stepAndLook()) << i;
    control.isWrong = true;
    asked.wantsTrial = isChecked;
    EXPECT_FALSE(stepAndLook());
    control.isWrong = false;
    asked.wantsTrial = false;
    while (isChecked && !isNoticed()) ASSERT_TRUE(stepAndLook());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(stepAndLook()) << i;
    EXPECT_EQ(isNoticed(), isChecked);
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
  }
  for (int i = 0; i < 20; ++i) {
    stepAndLook();
    EXPECT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
  }
}

}  // namespace
}  // namespace lbvh
