// SPDX-License-Identifier: Zlib
// Tests the analysis of a run's slow steps: percentiles, the longest steps, and their reasons.
// All times are made up, except in the test of the clock.
#include "support/tails.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/thread_time.h"
#include "support/timing.h"

namespace {

/// Steps that take 1 ms, all of it on a core, and search for the pairs of 10 of 100 objects.
std::vector<StepFacts> steadySteps(std::size_t count) {
  return std::vector<StepFacts>(count, StepFacts{1, 1, false, 100, 10});
}

/// Makes 40 steps, gives the 21st these facts, and returns the longest.
LongStep longestWith(const StepFacts& facts) {
  std::vector<StepFacts> steps = steadySteps(40);
  steps[20] = facts;
  return tailsOf(steps).longest.front();
}

TEST(Tails, PercentilesOfOneToAHundredAreRight) {
  std::vector<StepFacts> steps;
  for (int i = 1; i <= 100; ++i) steps.push_back({double(i), double(i)});
  const Tails tails = tailsOf(steps);
  EXPECT_EQ(tails.median, 51);
  EXPECT_EQ(tails.p95, 96);
  EXPECT_EQ(tails.p99, 100);
  EXPECT_EQ(tails.max, 100);
  ASSERT_EQ(tails.longest.size(), 3u);
  EXPECT_EQ(tails.longest[0].step, 100);
  EXPECT_EQ(tails.longest[1].step, 99);
  EXPECT_EQ(tails.longest[2].ms, 98);
}

TEST(Tails, AroundIsTheMedianOfTheFifteenNearestSteps) {
  std::vector<StepFacts> steps;
  for (int i = 1; i <= 100; ++i) steps.push_back({double(i), double(i)});
  EXPECT_EQ(tailsOf(steps).longest[0].around, 93) << "median of 86 to 100, the last 15";
  steps[39].ms = 500;
  EXPECT_EQ(tailsOf(steps).longest[0].around, 41) << "median of 33 to 47 with 500 for 40";
  steps[0].ms = 1000;
  EXPECT_EQ(tailsOf(steps).longest[0].around, 9) << "median of 1 to 15 with 1000 for 1";
}

TEST(Tails, AmongEquallyLongStepsTheFirstAreListed) {
  const Tails tails = tailsOf(steadySteps(200));
  ASSERT_EQ(tails.longest.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tails.longest[std::size_t(i)].step, i + 1);
}

TEST(Tails, AreDefinedForFewSteps) {
  EXPECT_EQ(tailsOf({}).max, 0);
  EXPECT_TRUE(tailsOf({}).longest.empty());
  const Tails tails = tailsOf({{2, 2}, {6, 6}});
  ASSERT_EQ(tails.longest.size(), 2u);
  EXPECT_EQ(tails.longest[0].step, 2);
  EXPECT_EQ(timesAround(tails.longest[0]), 1) << "the upper median of both";
  EXPECT_EQ(timesAround(LongStep{}), 0);
}

TEST(Tails, ReasonsAreGrowthFullSearchAndWaiting) {
  EXPECT_EQ(longestWith({5, 5, false, 100, 10}).reason, "-");
  EXPECT_EQ(longestWith({5, 5, true, 100, 10}).reason, "growth");
  EXPECT_EQ(longestWith({5, 5, false, 100, 100}).reason, "full_search");
  EXPECT_EQ(longestWith({5, 1, false, 100, 10}).reason, "waiting");
  EXPECT_EQ(longestWith({5, 1, true, 100, 100}).reason, "growth+full_search+waiting");
  EXPECT_EQ(longestWith({5, 1, false, 0, 0}).reason, "waiting") << "Dbvt reports no objects";
}

TEST(Tails, AFullSearchIsAReasonOnlyAmongStepsWithoutOne) {
  std::vector<StepFacts> steps(40, StepFacts{1, 1, false, 100, 100});
  steps[20].ms = steps[20].cpuMs = 5;
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "-");
}

TEST(Tails, WaitingIsAReasonIfItIsMostOfTheExcess) {
  EXPECT_EQ(longestWith({5, 3.01, false, 100, 10}).reason, "-") << "1.99 of the 4 ms excess";
  EXPECT_EQ(longestWith({5, 2.99, false, 100, 10}).reason, "waiting") << "2.01 of the 4 ms excess";
  EXPECT_EQ(longestWith({1.1, 1.02, false, 100, 10}).reason, "-")
      << "less than a tenth of the step";
}

TEST(Tails, BeingTheFirstStepIsAReasonIfThereIsNoOther) {
  std::vector<StepFacts> steps = steadySteps(40);
  steps[0] = {5, 5, false, 100, 10};
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "first");
  steps[0].grew = true;
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "growth");
}

/// This test needs no absolute time limit, because a sleeping thread uses almost no CPU time, even
/// on a slow machine.
TEST(ThreadTime, PassesOnlyWhileTheThreadWorks) {
  const Stopwatch wall;
  const ThreadStopwatch cpu;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(cpu.milliseconds(), wall.milliseconds() / 2);
  const double before = cpu.milliseconds();
  while (cpu.milliseconds() <= before) {
  }
  EXPECT_GT(cpu.milliseconds(), 0);
}

}  // namespace
