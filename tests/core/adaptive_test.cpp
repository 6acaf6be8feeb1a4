// SPDX-License-Identifier: Zlib
// The pipeline that runs on the host or the GPU. The "GPU" of these tests is the host, and fails or
// waits when told to, so they run everywhere.
#include "broadphase/choose/adaptive.h"
#include "broadphase/core/space_error.h"
#include "broadphase/host/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "failing_new.h"
#include "gate.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

enum class Fail { never, before, after, forGood };

/// What the test and its "GPU" share.
struct Control {
  std::atomic<Fail> fail{Fail::never};
  test::Gate gate{true};  ///< while it is closed, it waits where it is made and in its steps
  std::atomic<int> steps{0};
  std::atomic<int> delayMs{0};

  void hold() { gate.close(); }
  void release() { gate.open(); }
};

/// Fails before its step does anything, or after all of it.
class Flaky final : public Pipeline {
 public:
  explicit Flaky(Control& control) : control_(control) { control.gate.pass(); }
  void step(const StepInput& input, StepStats& stats) override {
    control_.gate.pass();
    if (control_.delayMs > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(control_.delayMs));
    ++control_.steps;
    const Fail fail = control_.fail;
    if (fail == Fail::before || fail == Fail::forGood)
      throw SpaceError("failed before", fail == Fail::forGood);
    host_->step(input, stats);
    if (fail != Fail::after) return;
    stats.totalMs = -1;  // which the host's step does not write
    throw SpaceError("failed after", false);
  }
  void buildTree(View<const Aabb> boxes) override { host_->buildTree(boxes); }
  void setPreviousPairs(View<const Pair> pairs) override { host_->setPreviousPairs(pairs); }
  View<const Pair> pairs() override { return host_->pairs(); }
  View<const Pair> added() const override { return host_->added(); }
  View<const Pair> removed() const override { return host_->removed(); }
  Tree tree() const override { return host_->tree(); }
  std::size_t memoryBytes() const override { return host_->memoryBytes(); }

 private:
  Control& control_;
  std::unique_ptr<Pipeline> host_ = makeHostPipeline(1, simdKernels());
};

/// Chooses at random, and tries at random.
class AtRandom final : public SpaceChooser {
 public:
  explicit AtRandom(std::uint32_t seed) : random_(seed) {}
  Where next() const override { return next_; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return wantsTrial_; }
  void stepped(Where, const StepFigures&) noexcept override {
    next_ = random_.below(3) == 0 ? otherThan(next_) : next_;
    wantsTrial_ = random_.below(3) == 0;
  }
  void tried(Where, double) noexcept override {}
  double medianMs(Where) const noexcept override { return 0; }
  const char* why() const noexcept override { return "by chance"; }

 private:
  Random random_;
  Where next_ = Where::host;
  bool wantsTrial_ = false;
};

std::unique_ptr<AdaptivePipeline> makeAdaptive(Control& control,
                                               std::unique_ptr<SpaceChooser> chooser) {
  const auto makeHost = [] { return NamedPipeline{makeHostPipeline(1, simdKernels()), "host"}; };
  const auto makeGpu = [&control] {
    if (control.fail == Fail::forGood) throw SpaceError("no such thing", true);
    return NamedPipeline{std::make_unique<Flaky>(control), "flaky"};
  };
  return std::make_unique<AdaptivePipeline>(makeHost().pipeline, makeHost, makeGpu,
                                            std::move(chooser));
}

class Adaptive : public testing::Test {
 protected:
  Adaptive() { gpuServes(); }

  /// Anew, on the GPU while it does not fail.
  void gpuServes() {
    made = makeAdaptive(control, std::make_unique<AlwaysGpu>());
    made->awaitGpu();
    undisturbed = makeHostPipeline(1, simdKernels());
  }
  void chosenBy(std::unique_ptr<SpaceChooser> chooser) {
    made = makeAdaptive(control, std::move(chooser));
    undisturbed = makeHostPipeline(1, simdKernels());
  }

  void step(std::size_t n = 200) {
    std::vector<std::uint64_t> changed(n / 64 + 1, boxes.size() == n ? 0 : ~std::uint64_t{0});
    if (boxes.size() != n) boxes = test::boxSets()[0].make(n, random);
    for (int change = 0; change < 30 && n > 0; ++change) {
      const std::size_t i = random.below(static_cast<std::uint32_t>(n));
      boxes[i] = boxes[random.below(static_cast<std::uint32_t>(n))];
      changed[i / 64] |= std::uint64_t{1} << i % 64;
    }
    const bool tells = random.below(2) == 0;  // which boxes have changed
    std::vector<std::uint8_t> removedObjects(random.below(3) == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    StepStats stats;
    StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    if (tells) input.changed = view(changed);
    made->step(input, stats);
    input.changed = {};
    ASSERT_EQ(stats.totalMs, 0) << "figures of a step that failed";
    undisturbed->step(input, stats);
    ASSERT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(made->added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(made->removed()), toVector(undisturbed->removed()));
  }

  const std::string& backend() const { return made->info()->backend; }
  const std::string& reason() const { return made->info()->reason; }

  Random random{101};
  Control control;
  std::atomic<Fail>& fail = control.fail;
  Boxes boxes;
  std::unique_ptr<AdaptivePipeline> made;
  std::unique_ptr<Pipeline> undisturbed;
};

TEST_F(Adaptive, EveryStepEqualsThatOfAPipelineWithoutFailures) {
  for (int round = 0; round < 60; ++round) {
    const Fail kinds[] = {Fail::never, Fail::never, Fail::before, Fail::after};
    fail = kinds[random.below(4)];
    step(round % 20 == 19 ? 50 + random.below(300) : boxes.empty() ? 200 : boxes.size());
  }
}

TEST_F(Adaptive, SaysWhereItRanAndComesBack) {
  EXPECT_EQ(backend(), "flaky") << "before the first step, too";
  step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(reason(), "asked for");
  fail = Fail::after;
  step();
  EXPECT_EQ(backend(), "host");
  EXPECT_EQ(reason(), "failed after");
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
  EXPECT_EQ(backend(), "flaky") << "the first failure of a new row";
}

TEST_F(Adaptive, AStickyErrorIsFinal) {
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

TEST_F(Adaptive, AGpuThatCannotBeMadeIsAnErrorOnlyForWhomAsks) {
  fail = Fail::forGood;
  EXPECT_THROW(gpuServes(), SpaceError);
  chosenBy(std::make_unique<AtRandom>(1));
  for (int i = 0; i < 20; ++i) step();
  while (reason() != "no such thing") step();
  EXPECT_EQ(backend(), "host");
}

// The warm-up hangs; a hundred steps are done meanwhile.
TEST_F(Adaptive, NoStepWaitsForTheWarmUp) {
  control.hold();
  chosenBy(std::make_unique<AlwaysGpu>());
  for (int i = 0; i < 100; ++i) {
    step();
    ASSERT_EQ(backend(), "host");
    ASSERT_EQ(reason(), "the GPU is being warmed up");
  }
  control.release();
  while (backend() == "host") step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(made->info()->switches, 1u);
}

/// The host serves, and the GPU is tried after each step.
class TriesTheGpu final : public SpaceChooser {
 public:
  Where next() const override { return Where::host; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return true; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, double) noexcept override {}
  double medianMs(Where) const noexcept override { return 0; }
  const char* why() const noexcept override { return "by decree"; }
};

TEST_F(Adaptive, NoStepWaitsForATrial) {
  chosenBy(std::make_unique<AtRandom>(2));
  while (control.steps == 0) step();  // made, and has been tried or has served
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

TEST_F(Adaptive, ATrialThatFailsIsRepeatedAfterARest) {
  fail = Fail::after;
  chosenBy(std::make_unique<TriesTheGpu>());
  while (reason() != "failed after") step();
  EXPECT_EQ(backend(), "host");
  fail = Fail::never;
  while (reason() == "failed after") step();
  EXPECT_EQ(reason(), "by decree") << "it has worked again";
}

TEST_F(Adaptive, OnlyTheHostLeavesAPackedScene) {
  step();
  EXPECT_EQ(made->packed().boxes, nullptr) << "the GPU has served";
  fail = Fail::before;
  step();
  EXPECT_NE(made->packed().boxes, nullptr);
  fail = Fail::never;
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(backend(), "flaky");
  EXPECT_EQ(made->packed().boxes, nullptr) << "the host's is of another step";
}

TEST_F(Adaptive, WhoeverServesThePairsAreTheSame) {
  chosenBy(std::make_unique<AtRandom>(3));
  int onHost = 0;
  for (int round = 0; round < 600; ++round) {
    const Fail kinds[] = {Fail::before, Fail::after, Fail::never};
    fail = kinds[std::min(random.below(40), 2u)];
    step(round % 50 == 49 ? 50 + random.below(300) : boxes.empty() ? 200 : boxes.size());
    onHost += backend() == "host";
  }
  EXPECT_GT(onHost, 20);
  EXPECT_LT(onHost, 580);
  EXPECT_GT(made->info()->switches, 10u);
}

TEST_F(Adaptive, ASlowGpuIsTriedAndLeftAlone) {
  control.delayMs = 20;
  chosenBy(std::make_unique<FasterSpace>(0.0));
  while (reason() != "faster than the GPU") step();
  EXPECT_EQ(backend(), "host");
  EXPECT_EQ(made->info()->switches, 0u);
  EXPECT_GE(made->info()->gpuMedianMs, 20);
  EXPECT_GT(made->info()->hostMedianMs, 0);
}

TEST_F(Adaptive, EndsDuringWarmUpAndTrial) {
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
// A child has the GPU's thread no more: its host goes on from the same pairs.
TEST_F(Adaptive, TheHostServesInAChildProcess) {
  for (const bool inTrial : {false, true}) {
    if (inTrial) chosenBy(std::make_unique<AtRandom>(5));
    for (int i = 0; i < 20; ++i) step();
    if (inTrial) control.delayMs = 20;
    for (int i = 0; i < 3; ++i) step();
    const pid_t child = fork();
    if (child == 0) {
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

TEST_F(Adaptive, BuildsTreesOnTheHostAndHoldsBothMemories) {
  step();
  made->buildTree(view(boxes));
  EXPECT_EQ(made->tree().nodes.size, 2 * boxes.size() - 1);
  const std::size_t one = undisturbed->memoryBytes();
  EXPECT_GE(made->memoryBytes(), one);
  fail = Fail::before;
  step();
  EXPECT_GT(made->memoryBytes(), one + one / 2) << "its host has made a step, too";
}

TEST_F(Adaptive, TooManyPairsIsNoFailureOfTheGpu) {
  step();
  const Pairs before = toVector(made->pairs());
  StepStats stats;
  EXPECT_THROW(made->step({view(boxes), {}, {}, 3}, stats), std::length_error);
  EXPECT_EQ(toVector(made->pairs()), before);
  step();
  EXPECT_EQ(backend(), "flaky");
}

// Each allocation of the calling thread fails in turn. Then the pairs are those of the step before,
// and the next step's delta is to them.
TEST_F(Adaptive, AStepThatLacksMemoryChangesNothing) {
  int failures = 0;
  for (int round = 0; round < 12; ++round) {
    const std::size_t n = 100 + 40 * static_cast<std::size_t>(round % 4);
    boxes = test::boxSets()[0].make(n, random);
    std::vector<std::uint8_t> removedObjects(round % 3 == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    fail = round % 5 == 4 ? Fail::before : Fail::never;
    StepStats stats;
    const StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    const Pairs before = toVector(made->pairs());
    for (long allocations = 0;; ++allocations) {
      try {
        failing_new::callWith(allocations, [&] { made->step(input, stats); });
        break;
      } catch (const std::bad_alloc&) {
        ASSERT_EQ(toVector(made->pairs()), before) << "after " << allocations << " allocations";
        ++failures;
      }
    }
    undisturbed->step(input, stats);
    ASSERT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(made->added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(made->removed()), toVector(undisturbed->removed()));
  }
  EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace lbvh
