// SPDX-License-Identifier: Zlib
// The slow steps of a run: percentiles, which steps were the longest, and why. All times but those
// of the clock's own test are made up.
#include "support/tails.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/thread_time.h"
#include "support/timing.h"

namespace {

/// Steps of 1 ms on a core that search a tenth of 100 objects.
std::vector<StepFacts> steadySteps(std::size_t count) {
  return std::vector<StepFacts>(count, StepFacts{1, 1, false, 100, 10});
}

/// The longest of 40 steps, if step 21 is this one.
LongStep longestWith(const StepFacts& facts) {
  std::vector<StepFacts> steps = steadySteps(40);
  steps[20] = facts;
  return tailsOf(steps).longest.front();
}

TEST(Tails, OfTheNumbersToAHundred) {
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

TEST(Tails, AroundAreTheFifteenStepsAroundOne) {
  std::vector<StepFacts> steps;
  for (int i = 1; i <= 100; ++i) steps.push_back({double(i), double(i)});
  EXPECT_EQ(tailsOf(steps).longest[0].around, 93) << "86 to 100, as there are no more";
  steps[39].ms = 500;
  EXPECT_EQ(tailsOf(steps).longest[0].around, 41) << "33 to 47, with 500 for 40";
  steps[0].ms = 1000;
  EXPECT_EQ(tailsOf(steps).longest[0].around, 9) << "1 to 15, with 1000 for 1";
}

TEST(Tails, OfEquallyLongStepsTheFirstCountMost) {
  const Tails tails = tailsOf(steadySteps(200));
  ASSERT_EQ(tails.longest.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tails.longest[std::size_t(i)].step, i + 1);
}

TEST(Tails, OfFewSteps) {
  EXPECT_EQ(tailsOf({}).max, 0);
  EXPECT_TRUE(tailsOf({}).longest.empty());
  const Tails tails = tailsOf({{2, 2}, {6, 6}});
  ASSERT_EQ(tails.longest.size(), 2u);
  EXPECT_EQ(tails.longest[0].step, 2);
  EXPECT_EQ(timesAround(tails.longest[0]), 1) << "the upper median of both";
  EXPECT_EQ(timesAround(LongStep{}), 0);
}

TEST(Tails, Reasons) {
  EXPECT_EQ(longestWith({5, 5, false, 100, 10}).reason, "-");
  EXPECT_EQ(longestWith({5, 5, true, 100, 10}).reason, "growth");
  EXPECT_EQ(longestWith({5, 5, false, 100, 100}).reason, "full_search");
  EXPECT_EQ(longestWith({5, 1, false, 100, 10}).reason, "waiting");
  EXPECT_EQ(longestWith({5, 1, true, 100, 100}).reason, "growth+full_search+waiting");
  EXPECT_EQ(longestWith({5, 1, false, 0, 0}).reason, "waiting") << "of dbvt, which tells nothing";
}

TEST(Tails, AFullSearchIsAReasonOnlyAmongOthers) {
  std::vector<StepFacts> steps(40, StepFacts{1, 1, false, 100, 100});
  steps[20].ms = steps[20].cpuMs = 5;
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "-");
}

TEST(Tails, WaitingIsMostOfTheExcess) {
  EXPECT_EQ(longestWith({5, 3.01, false, 100, 10}).reason, "-") << "1.99 of 4 ms more";
  EXPECT_EQ(longestWith({5, 2.99, false, 100, 10}).reason, "waiting") << "2.01 of them";
  EXPECT_EQ(longestWith({1.1, 1.02, false, 100, 10}).reason, "-") << "less than a tenth of all";
}

TEST(Tails, TheFirstStepIsAReasonIfThereIsNoOther) {
  std::vector<StepFacts> steps = steadySteps(40);
  steps[0] = {5, 5, false, 100, 10};
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "first");
  steps[0].grew = true;
  EXPECT_EQ(tailsOf(steps).longest.front().reason, "growth");
}

/// No limit on a time: a thread that sleeps spends next to none, however slow the machine is.
TEST(ThreadTime, PassesWhileTheThreadWorksOnly) {
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
