// SPDX-License-Identifier: Zlib
// Tests how large the launches of a step on a GPU are, and whether the step sorts. Needs no GPU.
#include <gtest/gtest.h>

#include "broadphase/cuda/step_plan.h"
#include "broadphase/options.h"

namespace lbvh {
namespace {

StepHeader searched(std::uint64_t extents, std::uint64_t tests) {
  StepHeader step;
  step.extents = extents;
  step.tests = tests;
  return step;
}

/// A plan after its first step, which sorts and succeeds.
OrderPlan planAfterASort(std::size_t boxes, std::uint64_t handedIn, const StepHeader& step) {
  OrderPlan plan;
  plan.begin(boxes, handedIn);
  EXPECT_TRUE(plan.sorts());
  plan.observe(step, false);
  plan.succeed(boxes);
  return plan;
}

/// Whether a step that begins now sorts.
bool sortsNext(OrderPlan plan, std::size_t boxes, std::uint64_t handedIn) {
  plan.begin(boxes, handedIn);
  return plan.sorts();
}

TEST(OrderPlan, KeepsTheOrderIfTheCapacityIsTheSame) {
  const OrderPlan plan = planAfterASort(512, 300, searched(1000, 1000));
  EXPECT_FALSE(sortsNext(plan, 512, 300));
  EXPECT_FALSE(sortsNext(plan, 512, 260)) << "fewer boxes of the same capacity";
  EXPECT_TRUE(sortsNext(plan, 768, 300));
  EXPECT_TRUE(sortsNext(plan, 256, 256));
  OrderPlan never = plan;
  never.mayKeep = false;
  EXPECT_TRUE(sortsNext(never, 512, 300));
}

TEST(OrderPlan, SortsIfManyBoxesAreNewSinceTheLastSort) {
  OrderPlan plan = planAfterASort(10240, 10000, searched(1000, 1000));
  const std::uint64_t most = 10000 + 10000 / 256 + 32;
  EXPECT_FALSE(sortsNext(plan, 10240, most));
  EXPECT_TRUE(sortsNext(plan, 10240, most + 1));
  plan.begin(10240, most);
  plan.observe(searched(1000, 1000), false);
  plan.succeed(10240);
  EXPECT_TRUE(sortsNext(plan, 10240, most + 1))
      << "boxes are new since the last sort, not since the last step";
}

TEST(OrderPlan, FailedStepLeavesNoOrder) {
  OrderPlan plan = planAfterASort(512, 300, searched(1000, 1000));
  plan.begin(512, 300);
  EXPECT_FALSE(plan.sorts());
  EXPECT_TRUE(sortsNext(plan, 512, 300));
}

TEST(OrderPlan, KeptOrderMayBeDroppedWithinAStep) {
  OrderPlan plan = planAfterASort(512, 300, searched(100000, 1000));
  EXPECT_TRUE(plan.covers(searched(~std::uint64_t{0}, 0))) << "a step that sorts is searched";
  plan.begin(512, 300);
  EXPECT_EQ(plan.mostExtents(), 2 * 100000u + 65536u);
  EXPECT_TRUE(plan.covers(searched(265536, 0)));
  const StepHeader tooLarge = searched(265537, 0);
  EXPECT_FALSE(plan.covers(tooLarge));
  plan.observe(tooLarge, false);
  plan.retry();
  EXPECT_TRUE(plan.sorts());
  EXPECT_TRUE(plan.covers(tooLarge));
  plan.observe(searched(300000, 1000), false);
  plan.succeed(512);
  plan.begin(512, 300);
  EXPECT_FALSE(plan.sorts());
  EXPECT_EQ(plan.mostExtents(), 2 * 300000u + 65536u);
}

TEST(OrderPlan, RunsAgainInTheKeptOrderIfOnlyTheCapacityWasTooSmall) {
  OrderPlan plan = planAfterASort(512, 300, searched(1000, 1000));
  plan.begin(512, 300);
  plan.observe(searched(1000, 1000), false);
  plan.retry();
  EXPECT_FALSE(plan.sorts());
}

TEST(OrderPlan, NextStepSortsIfTheSearchTestsMuchMore) {
  for (const std::uint64_t tests : {1000u, 1404u, 1405u}) {
    OrderPlan plan = planAfterASort(512, 300, searched(1000, 1000));
    // The limit is relative to the last sort, not to the last step.
    for (int kept = 0; kept < 2; ++kept) {
      plan.begin(512, 300);
      EXPECT_FALSE(plan.sorts());
      plan.observe(searched(1000, kept == 0 ? 1404 : tests), false);
      plan.succeed(512);
    }
    EXPECT_EQ(sortsNext(plan, 512, 300), tests > 1404) << tests;
  }
}

TEST(OrderPlan, NextStepSortsIfCodesGetLonger) {
  OrderPlan plan = planAfterASort(512, 300, searched(1000, 1000));
  plan.begin(512, 300);
  plan.observe(searched(1000, 1000), true);
  plan.succeed(512);
  EXPECT_TRUE(sortsNext(plan, 512, 300));
}

TEST(FewPlan, SearchesForFewIfAnEighthOrLessHasChanged) {
  FewPlan plan;
  EXPECT_TRUE(plan.searchesFew(0, 1000));
  EXPECT_TRUE(plan.searchesFew(125, 1000));
  EXPECT_FALSE(plan.searchesFew(126, 1000));
}

TEST(FewPlan, PausesLongerAfterEachFailureInARow) {
  FewPlan plan;
  for (const int pause : {1, 2, 4, 8, 16, 32, 64, 64}) {
    plan.fellShort();
    for (int step = 0; step < pause; ++step) EXPECT_FALSE(plan.searchesFew(1, 1000)) << pause;
    EXPECT_TRUE(plan.searchesFew(1, 1000)) << pause;
  }
  plan.succeed();
  plan.fellShort();
  EXPECT_FALSE(plan.searchesFew(1, 1000));
  EXPECT_TRUE(plan.searchesFew(1, 1000));
}

StepPlan planFor(std::size_t boxes, std::uint64_t mostPairs = 1 << 20) {
  StepPlan plan;
  plan.mostPairs = mostPairs;
  plan.begin(boxes, boxes, 0);
  return plan;
}

StepHeader found(std::uint64_t pairs, int bits = 10) {
  StepHeader step;
  step.pairs = pairs;
  step.grid.bits = bits;
  return step;
}

TEST(StepPlan, BeginsWithEightPairsPerBoxOrAsManyAsBefore) {
  EXPECT_EQ(planFor(1000).pairs, 8000u);
  EXPECT_EQ(planFor(1000, 5000).pairs, 5000u);
  StepPlan plan;
  plan.mostPairs = 1 << 20;
  plan.begin(1000, 1000, 123);
  EXPECT_EQ(plan.pairs, 123u);
  plan.begin(5000, 5000, 4567);
  EXPECT_EQ(plan.pairs, 123u) << "only once";
}

TEST(StepPlan, CoversStepsWithinTheCapacityAndWithTheRightCodes) {
  StepPlan plan = planFor(1000);
  EXPECT_TRUE(plan.covers(found(8000)));
  EXPECT_FALSE(plan.covers(found(8001)));
  EXPECT_FALSE(plan.covers(found(1, 14)));
  EXPECT_FALSE(plan.covers(found(1, 21)));
  plan.retry(found(8001, 21));
  EXPECT_TRUE(plan.covers(found(8001, 21)));
  EXPECT_EQ(plan.pairs, 8001u + 1000u + 1024u);
}

// A kept order has no codes. The next sort uses codes of the length that the grid needs.
TEST(StepPlan, KeptOrderNeedsNoOtherCodesUntilTheNextSort) {
  StepPlan plan = planFor(1000);
  plan.adaptTo(found(100));
  plan.order.succeed(1000);
  plan.begin(1000, 1000, 100);
  EXPECT_TRUE(plan.covers(found(100, 21)));
  plan.adaptTo(found(100, 21));
  plan.order.succeed(1000);
  EXPECT_EQ(plan.bits, 21);
  plan.begin(1000, 1000, 100);
  EXPECT_TRUE(plan.order.sorts());
  EXPECT_FALSE(plan.covers(found(100, 10)));
}

// If nothing was searched, nothing is known about the number of pairs.
TEST(StepPlan, StepThatWasNotSearchedChangesNoCapacity) {
  StepPlan plan = planFor(1000);
  plan.adaptTo(found(5000));
  plan.order.succeed(1000);
  const std::size_t pairs = plan.pairs;
  plan.begin(1000, 1000, 100);
  StepHeader step = found(0);
  step.extents = 1 << 20;
  EXPECT_FALSE(plan.covers(step));
  plan.retry(step);
  EXPECT_EQ(plan.pairs, pairs);
  EXPECT_TRUE(plan.covers(step));
}

TEST(StepPlan, CapacityShrinksIfItIsFarTooLarge) {
  StepPlan plan = planFor(1000);
  plan.adaptTo(found(3000));
  EXPECT_EQ(plan.pairs, 8000u) << "less than twice 3,000 + 375 + 1,024";
  plan.adaptTo(found(2000));
  EXPECT_EQ(plan.pairs, 3274u);
  plan.adaptTo(found(3275));
  EXPECT_EQ(plan.pairs, 3275u + 409u + 1024u);
}

TEST(StepPlan, ListsHoldAnEighthOfThePairsWithinMappedMemory) {
  EXPECT_EQ(StepPlan::listedIn(0), StepPlan::kMinListed);
  EXPECT_EQ(StepPlan::listedIn(16 << 20), 262144u);
  EXPECT_EQ(StepPlan::listedIn(Options{}.pinnedDeltaMiB << 20), 4194304u);
  EXPECT_EQ(StepPlan::lockedIn(Options{}.pinnedDeltaMiB << 20), 8388608u);
  StepPlan plan;
  plan.mostListed = 1 << 16;
  plan.mostPairs = 1 << 20;
  plan.begin(1000, 1000, 0);
  EXPECT_EQ(plan.listed, 1024u) << "an eighth of 8,000 is less than 1,024";
  plan.adaptTo(found(40000));
  EXPECT_EQ(plan.listed, 4096u);
  StepHeader step = found(40000);
  step.arguments.oldPairs = 1;
  step.delta.removed = 4097;
  EXPECT_FALSE(plan.lists(step.delta));
  plan.adaptTo(step);
  EXPECT_EQ(plan.listed, 8192u);
  step.delta = {8192, 8192};
  EXPECT_TRUE(plan.lists(step.delta));
  step.delta = {8193, 0};
  EXPECT_FALSE(plan.lists(step.delta));
  plan.adaptTo(found(1));
  EXPECT_EQ(plan.listed, 8192u) << "never fewer";
}

}  // namespace
}  // namespace lbvh
