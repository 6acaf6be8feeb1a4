// The pipeline that finishes failed steps on the host, and the mirror of pairs that it relies on.
// The "GPU" of these tests is the host, and fails when told to, so they run everywhere.
#include "broadphase/pipelines/fallback.h"
#include "broadphase/exec/space.h"
#include "broadphase/pipelines/host.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "failing_new.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

enum class Fail { never, before, after, forGood };

/// Fails before its step does anything, or after all of it.
class Flaky final : public Pipeline {
 public:
  explicit Flaky(Fail& fail) : fail_(fail) {}
  void step(const StepInput& input, StepStats& stats) override {
    if (fail_ == Fail::before || fail_ == Fail::forGood)
      throw SpaceError("failed before", fail_ == Fail::forGood);
    host_->step(input, stats);
    if (fail_ != Fail::after) return;
    stats.totalMs = -1;  // which the host's step does not write
    throw SpaceError("failed after", false);
  }
  void buildTree(View<const Aabb> boxes, StepStats& stats) override {
    host_->buildTree(boxes, stats);
  }
  void setPreviousPairs(View<const Pair> pairs) override { host_->setPreviousPairs(pairs); }
  View<const Pair> pairs() const override { return host_->pairs(); }
  View<const Pair> added() const override { return host_->added(); }
  View<const Pair> removed() const override { return host_->removed(); }
  Tree tree() const override { return host_->tree(); }
  std::size_t memoryBytes() const override { return host_->memoryBytes(); }

 private:
  Fail& fail_;
  std::unique_ptr<Pipeline> host_ = makeHostPipeline(1, simdKernels());
};

class Fallback : public testing::Test {
 protected:
  void step(std::size_t n = 200) {
    if (boxes.size() != n) boxes = test::boxSets()[0].make(n, random);
    for (int change = 0; change < 30 && n > 0; ++change) {
      const std::size_t i = random.below(static_cast<std::uint32_t>(n));
      boxes[i] = boxes[random.below(static_cast<std::uint32_t>(n))];
    }
    std::vector<std::uint8_t> removedObjects(random.below(3) == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    StepStats stats;
    const StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    pipeline.step(input, stats);
    ASSERT_EQ(stats.totalMs, 0) << "figures of a step that failed";
    undisturbed->step(input, stats);
    ASSERT_EQ(toVector(pipeline.pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(pipeline.added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(pipeline.removed()), toVector(undisturbed->removed()));
  }

  Random random{101};
  Fail fail = Fail::never;
  Boxes boxes;
  FallbackPipeline pipeline{std::make_unique<Flaky>(fail), makeHostPipeline(1, simdKernels()),
                            "flaky"};
  std::unique_ptr<Pipeline> undisturbed = makeHostPipeline(1, simdKernels());
};

TEST_F(Fallback, EveryStepEqualsThatOfAPipelineWithoutFailures) {
  for (int round = 0; round < 60; ++round) {
    const Fail kinds[] = {Fail::never, Fail::never, Fail::before, Fail::after};
    fail = kinds[random.below(4)];
    step(round % 20 == 19 ? 50 + random.below(300) : boxes.empty() ? 200 : boxes.size());
  }
}

TEST_F(Fallback, SaysWhereItRanAndComesBack) {
  step();
  EXPECT_EQ(pipeline.info()->backend, "flaky");
  fail = Fail::after;
  step();
  EXPECT_EQ(pipeline.info()->backend, "host");
  EXPECT_EQ(pipeline.info()->reason, "failed after");
  fail = Fail::never;
  step();
  EXPECT_EQ(pipeline.info()->backend, "flaky");
  EXPECT_NE(pipeline.info()->reason.find("failed after"), std::string::npos);
}

TEST_F(Fallback, StaysOnTheHostAfterAStickyErrorOrThreeInARow) {
  fail = Fail::forGood;
  step();
  fail = Fail::never;
  step();
  EXPECT_EQ(pipeline.info()->backend, "host");

  FallbackPipeline other{std::make_unique<Flaky>(fail), makeHostPipeline(1, simdKernels()),
                         "flaky"};
  StepStats stats;
  fail = Fail::before;
  for (int i = 0; i < 3; ++i) {
    other.step({view(boxes), {}, {}, 1u << 20}, stats);
    EXPECT_EQ(stats.searched, i == 0 ? boxes.size() : 0) << "then all rest";
  }
  fail = Fail::never;
  other.step({view(boxes), {}, {}, 1u << 20}, stats);
  EXPECT_EQ(other.info()->backend, "host");
}

TEST_F(Fallback, OnlyFailuresInARowCount) {
  for (int round = 0; round < 3; ++round) {
    for (const Fail kind : {Fail::before, Fail::after}) {
      fail = kind;
      step();
      EXPECT_EQ(pipeline.info()->backend, "host");
    }
    fail = Fail::never;
    step();
    EXPECT_EQ(pipeline.info()->backend, "flaky") << "after two failures, round " << round;
  }
}

TEST_F(Fallback, ContinuesFromThePairsThatAreSet) {
  step();
  const Pairs pairs{{3, 7}, {5, 9}, {100, 101}};
  for (const Fail kind : {Fail::never, Fail::before}) {
    fail = kind;
    pipeline.setPreviousPairs(view(pairs));
    undisturbed->setPreviousPairs(view(pairs));
    EXPECT_EQ(toVector(pipeline.pairs()), pairs);
    EXPECT_TRUE(pipeline.added().empty());
    EXPECT_TRUE(pipeline.removed().empty());
    step();
  }
}

TEST_F(Fallback, BuildsTreesOnTheHostAndHoldsBothMemories) {
  step();
  StepStats stats;
  pipeline.buildTree(view(boxes), stats);
  EXPECT_EQ(pipeline.tree().nodes.size, 2 * boxes.size() - 1);
  const std::size_t one = undisturbed->memoryBytes();
  EXPECT_GE(pipeline.memoryBytes(), one);
  fail = Fail::before;
  step();
  EXPECT_GT(pipeline.memoryBytes(), one + one / 2) << "its host has made a step, too";
}

TEST_F(Fallback, TooManyPairsIsNoFailureOfTheGpu) {
  step();
  const Pairs before = toVector(pipeline.pairs());
  StepStats stats;
  EXPECT_THROW(pipeline.step({view(boxes), {}, {}, 3}, stats), std::length_error);
  EXPECT_EQ(toVector(pipeline.pairs()), before);
  step();
  EXPECT_EQ(pipeline.info()->backend, "flaky");
}

// Each allocation of a step fails in turn. Then the pairs are those of the step before, and the
// next step's delta is to them.
TEST_F(Fallback, AStepThatLacksMemoryChangesNothing) {
  int failures = 0;
  for (int round = 0; round < 12; ++round) {
    const std::size_t n = 100 + 40 * static_cast<std::size_t>(round % 4);
    boxes = test::boxSets()[0].make(n, random);
    std::vector<std::uint8_t> removedObjects(round % 3 == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    fail = round % 5 == 4 ? Fail::before : Fail::never;
    StepStats stats;
    const StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    const Pairs before = toVector(pipeline.pairs());
    for (long allocations = 0;; ++allocations) {
      try {
        failing_new::callWith(allocations, [&] { pipeline.step(input, stats); });
        break;
      } catch (const std::bad_alloc&) {
        ASSERT_EQ(toVector(pipeline.pairs()), before) << "after " << allocations << " allocations";
        ++failures;
      }
    }
    undisturbed->step(input, stats);
    ASSERT_EQ(toVector(pipeline.pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(pipeline.added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(pipeline.removed()), toVector(undisturbed->removed()));
  }
  EXPECT_GT(failures, 20);
}

TEST(PairMirror, FollowsAnyNumberOfDeltas) {
  Random random(102);
  PairMirror mirror;
  Pairs now;
  for (int round = 0; round < 500; ++round) {
    Pairs next;
    for (std::uint32_t i = 0; i < 30; ++i)
      if (random.below(3) != 0) next.push_back({i / 6, 10 + i});
    std::vector<std::uint8_t> removedObjects(random.below(10) == 0 ? 20 : 0, 0);
    if (!removedObjects.empty()) removedObjects[random.below(20)] = 1;
    std::erase_if(now, [&](Pair p) {
      return !removedObjects.empty() &&
             (removedObjects[p.first] != 0 || (p.second < 20 && removedObjects[p.second] != 0));
    });
    Pairs added, removed;
    std::set_difference(next.begin(), next.end(), now.begin(), now.end(),
                        std::back_inserter(added));
    std::set_difference(now.begin(), now.end(), next.begin(), next.end(),
                        std::back_inserter(removed));
    mirror.log(view(added), view(removed), view(removedObjects));
    now = next;
    if (random.below(4) == 0) ASSERT_EQ(toVector(mirror.pairs()), now) << round;
  }
}

}  // namespace
}  // namespace lbvh
