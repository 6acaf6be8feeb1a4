// SPDX-License-Identifier: Zlib
// Tests the pipeline that runs on the host or the GPU: failures, switches between the two, and what
// a step waits for.
#include "adaptive_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "failing_new.h"

namespace lbvh {
namespace {

using test::Adaptive;
using test::AtRandom;
using test::Fail;
using test::Pairs;
using test::toVector;
using test::TriesTheGpu;
using test::view;

TEST_F(Adaptive, EveryStepEqualsThatOfAPipelineWithoutFailures) {
  for (int round = 0; round < 200; ++round) {
    const Fail kinds[] = {Fail::never, Fail::never, Fail::before, Fail::after};
    fail = kinds[random.below(4)];
    control.failsFetch = kinds[random.below(3)];  // whether copying the pairs fails after the step
    step(round % 20 == 19 ? 50 + random.below(300) : boxes.empty() ? 200 : boxes.size());
  }
}

TEST_F(Adaptive, ReportsTheSpaceAndReturnsToTheGpu) {
  EXPECT_EQ(backend(), "flaky") << "before the first step, too";
  step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(reason(), "requested");
  EXPECT_EQ(made->info()->spaceReason, SpaceReason::requested);
  fail = Fail::after;
  step();
  EXPECT_EQ(backend(), "host");
  EXPECT_EQ(reason(), "failed after");
  EXPECT_EQ(made->info()->spaceReason, SpaceReason::failed);
  fail = Fail::never;
  for (int rest = 0; rest < 2; ++rest) step();
  step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(reason(), "works again after: failed after");
  EXPECT_EQ(made->info()->switches, 2u);
}

TEST_F(Adaptive, RestsForTwoFourEightStepsAfterFailures) {
  step();
  fail = Fail::before;
  for (const int rest : {2, 4, 8}) {
    step();
    const int failed = control.steps;
    for (int i = 0; i < rest; ++i) step();
    EXPECT_EQ(control.steps, failed) << "rest of " << rest;
    EXPECT_EQ(backend(), "host");
  }
  fail = Fail::never;
  step();
  EXPECT_EQ(backend(), "flaky") << "as soon as it works";
  fail = Fail::before;
  step();
  for (int i = 0; i < 2; ++i) step();
  fail = Fail::never;
  step();
  EXPECT_EQ(backend(), "flaky") << "the first failure of a new series";
}

TEST_F(Adaptive, StickyErrorIsFinal) {
  step();
  fail = Fail::forGood;
  step();
  fail = Fail::never;
  const int before = control.steps;
  for (int i = 0; i < 40; ++i) step();
  EXPECT_EQ(control.steps, before);
  EXPECT_EQ(backend(), "host");
  EXPECT_EQ(reason(), "failed before");
}

TEST_F(Adaptive, UnavailableGpuIsAnErrorOnlyIfItWasRequested) {
  fail = Fail::forGood;
  EXPECT_THROW(gpuServes(), SpaceError);
  chosenBy(std::make_unique<AtRandom>(1));
  for (int i = 0; i < 20; ++i) step();
  while (reason() != "no such thing") step();
  EXPECT_EQ(backend(), "host");
}

// A hundred steps run while the warm-up hangs.
TEST_F(Adaptive, NoStepWaitsForTheWarmUp) {
  control.hold();
  chosenBy(std::make_unique<AlwaysGpu>());
  for (int i = 0; i < 100; ++i) {
    step();
    ASSERT_EQ(backend(), "host");
    ASSERT_EQ(reason(), "the GPU is being warmed up");
    ASSERT_EQ(made->info()->spaceReason, SpaceReason::warmUp);
  }
  control.release();
  while (backend() == "host") step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(made->info()->switches, 1u);
}

TEST_F(Adaptive, NoStepWaitsForATrial) {
  chosenBy(std::make_unique<AtRandom>(2));
  while (control.steps == 0) step();  // until the GPU has run a trial or a step
  control.delayMs = 5;
  for (int i = 0; i < 100; ++i) step();
  control.delayMs = 0;
  chosenBy(std::make_unique<TriesTheGpu>());
  const int before = control.steps;
  while (control.steps < before + 3) step();
  control.hold();
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(backend(), "host");
  control.release();
}

TEST_F(Adaptive, FailedTrialIsRepeatedAfterARest) {
  fail = Fail::after;
  chosenBy(std::make_unique<TriesTheGpu>());
  while (reason() != "failed after") step();
  EXPECT_EQ(backend(), "host");
  fail = Fail::never;
  while (reason() == "failed after") step();
  EXPECT_EQ(reason(), "by decree") << "it has worked again";
}

// Pairs are copied to the host only when they are read, and at most once per step.
TEST_F(Adaptive, PairsAreCopiedWhenTheyAreRead) {
  for (int i = 0; i < 5; ++i) {
    change(200);
    StepStats stats;
    for (Pipeline* one : {static_cast<Pipeline*>(made.get()), undisturbed.get()})
      one->step({view(boxes), {}, {}, 1u << 20}, stats);
    EXPECT_EQ(control.fetches, i);
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    made->rest();
    EXPECT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    EXPECT_EQ(control.fetches, i + 1);
  }
}

// If the GPU's pairs cannot be copied, the host searches a copy of the last step's boxes. The lists
// of added and removed pairs stay the same, even after rest(). The next step continues from the
// pairs that the host found.
TEST_F(Adaptive, PairsThatCannotBeCopiedAreSearchedForAgain) {
  for (const Fail kind : {Fail::before, Fail::forGood})
    for (const bool rests : {false, true}) {
      fail = control.failsFetch = Fail::never;
      gpuServes();
      for (int i = 0; i < 4; ++i) step();
      change(200);
      StepStats stats;
      for (Pipeline* one : {static_cast<Pipeline*>(made.get()), undisturbed.get()})
        one->step({view(boxes), {}, {}, 1u << 20}, stats);
      changed.clear();
      EXPECT_EQ(backend(), "flaky");
      const Pairs before = toVector(made->added());
      if (rests) made->rest();
      control.failsFetch = kind;
      for (auto& box : boxes) box.min[0] += 100;  // after a step, callers may change their array
      EXPECT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
      EXPECT_EQ(toVector(made->added()), before);
      EXPECT_EQ(toVector(made->added()), toVector(undisturbed->added()));
      EXPECT_EQ(toVector(made->removed()), toVector(undisturbed->removed()));
      EXPECT_EQ(made->packed(), nullptr) << "the boxes that the host searched were a copy";
      for (auto& box : boxes) box.min[0] -= 100;
      asksAlways = true;
      control.failsFetch = Fail::never;
      step();
      EXPECT_EQ(backend(), "host");
      EXPECT_EQ(reason(), "failed to copy");
      for (int i = 0; i < 3; ++i) step();
      EXPECT_EQ(backend() == "host", kind == Fail::forGood);
      if (kind == Fail::before) EXPECT_EQ(made->info()->switches, 2u);
    }
}

TEST_F(Adaptive, OnlyTheHostLeavesAPackedScene) {
  step();
  EXPECT_EQ(made->packed(), nullptr) << "the GPU has served";
  fail = Fail::before;
  step();
  EXPECT_NE(made->packed(), nullptr);
  fail = Fail::never;
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(made->packed(), nullptr) << "the host's scene is of an earlier step";
}

TEST_F(Adaptive, PairsAreTheSameOnHostAndGpu) {
  chosenBy(std::make_unique<AtRandom>(3));
  int onHost = 0, onGpu = 0;
  const auto isEnough = [&] { return onHost > 20 && onGpu > 20 && made->info()->switches > 10; };
  for (int round = 0; round < 600 || !isEnough(); ++round) {
    const Fail kinds[] = {Fail::before, Fail::after, Fail::never};
    fail = kinds[std::min(random.below(40), 2u)];
    step(round % 50 == 49 ? 50 + random.below(300) : boxes.empty() ? 200 : boxes.size());
    ++(backend() == "host" ? onHost : onGpu);
  }
}

TEST_F(Adaptive, SlowGpuIsTriedButNotUsed) {
  control.delayMs = 20;
  chosenBy(std::make_unique<FasterSpace>(0.0));
  while (reason() != "faster than the GPU") step();
  EXPECT_EQ(backend(), "host");
  EXPECT_EQ(made->info()->switches, 0u);
  EXPECT_GE(made->info()->gpuMeanMs, 20);
  EXPECT_GT(made->info()->hostMeanMs, 0);
}

TEST_F(Adaptive, MayBeDestroyedDuringWarmUpAndTrial) {
  for (const bool whileMade : {true, false}) {
    chosenBy(std::make_unique<AtRandom>(4));
    if (whileMade) control.hold();
    for (int i = 0; i < 30; ++i) step();
    if (!whileMade) control.delayMs = 50;
    for (int i = 0; i < 5; ++i) step();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      control.release();
    });
    made.reset();
    later.join();
  }
}

#if defined(__unix__) && !defined(__SANITIZE_THREAD__)
// A child process has no GPU thread, so it continues on the host, from the same pairs.
TEST_F(Adaptive, AChildProcessUsesTheHost) {
  for (const bool inTrial : {false, true}) {
    if (inTrial) chosenBy(std::make_unique<AtRandom>(5));
    for (int i = 0; i < 20; ++i) step();
    if (inTrial) control.delayMs = 20;
    for (int i = 0; i < 3; ++i) step();
    const pid_t child = fork();
    if (child == 0) {
      asksAlways = true;
      expectTheSame();
      for (int i = 0; i < 5; ++i) step();
      const bool isRight = !HasFailure() && backend() == "host" &&
                           reason() == "a child process after fork() cannot use the GPU";
      made.reset();
      std::_Exit(isRight ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    step();
  }
}
#endif

TEST_F(Adaptive, ContinuesFromThePairsThatAreSet) {
  step();
  const Pairs pairs{{3, 7}, {5, 9}, {100, 101}};
  for (const Fail kind : {Fail::never, Fail::before}) {
    fail = kind;
    made->setPreviousPairs(view(pairs));
    undisturbed->setPreviousPairs(view(pairs));
    EXPECT_EQ(toVector(made->pairs()), pairs);
    EXPECT_TRUE(made->added().empty());
    EXPECT_TRUE(made->removed().empty());
    step();
  }
}

TEST_F(Adaptive, MemoryBytesIncludeHostAndGpu) {
  step();
  const std::size_t one = undisturbed->memoryBytes();
  EXPECT_GE(made->memoryBytes(), one);
  EXPECT_GE(made->memoryBytes(), one + 200 * sizeof(Aabb)) << "the copies of the boxes";
  fail = Fail::before;
  step();
  EXPECT_GT(made->memoryBytes(), one + one / 2) << "its host has made a step, too";
}

TEST_F(Adaptive, CopyOfTheBoxesIsFreedWhenTheHostServes) {
  fail = Fail::before;
  step();
  EXPECT_EQ(backend(), "host");
  EXPECT_LT(made->memoryBytes(), undisturbed->memoryBytes() + 200 * sizeof(Aabb));
}

TEST_F(Adaptive, TooManyPairsIsNoFailureOfTheGpu) {
  step();
  const Pairs before = toVector(made->pairs());
  change(200);
  StepStats stats;
  EXPECT_THROW(made->step({view(boxes), {}, {}, 3, view(changed)}, stats), std::length_error);
  EXPECT_EQ(toVector(made->pairs()), before);
  step();
  EXPECT_EQ(backend(), "flaky");
}

// Change bits are relative to the last step that did not throw. The rounds differ in whether pairs
// are read in between, and in whether the GPU fails in the next step.
TEST_F(Adaptive, ContinuesAfterAStepWithTooManyPairs) {
  for (int round = 0; round < 100; ++round) {
    fail = Fail::never;
    control.failsFetch = Fail::never;
    while (backend() == "host") step();
    step();
    change(200);
    StepStats stats;
    if (round % 2 == 0) fail = Fail::before;  // then the host runs the step, and throws
    EXPECT_THROW(made->step({view(boxes), {}, {}, 3, view(changed)}, stats), std::length_error);
    if (round % 3 == 0) ASSERT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    if (round % 5 < 2) fail = Fail::after;
    if (round % 7 < 2) control.failsFetch = Fail::before;
    step();
  }
}

// One after another, each allocation of the calling thread fails. After a failure, the pairs are
// still the pairs of the previous step, and the next delta is relative to them.
TEST_F(Adaptive, StepWithoutMemoryChangesNothing) {
  int failures = 0;
  for (int round = 0; round < 40; ++round) {
    const std::size_t n = round % 8 < 4 ? 100 + 40 * static_cast<std::size_t>(round % 4) : 300;
    change(n);
    std::vector<std::uint8_t> removedObjects(round % 3 == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    fail = round % 5 == 4 ? Fail::before : round % 5 == 2 ? Fail::after : Fail::never;
    StepStats stats;
    StepInput input{view(boxes), {}, view(removedObjects), 1u << 20, view(changed)};
    const Pairs before = toVector(undisturbed->pairs());
    const bool asks = round % 3 != 1;  // not always, because reading copies the pairs from the GPU
    for (long allocations = 0;; ++allocations) {
      try {
        failing_new::callWith(allocations, [&] { made->step(input, stats); });
        break;
      } catch (const std::bad_alloc&) {
        if (asks)
          ASSERT_EQ(toVector(made->pairs()), before) << "after " << allocations << " allocations";
        ++failures;
      }
    }
    changed.clear();
    input.changed = {};
    undisturbed->step(input, stats);
    ASSERT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(made->added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(made->removed()), toVector(undisturbed->removed()));
  }
  EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace lbvh
