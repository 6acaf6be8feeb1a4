// SPDX-License-Identifier: Zlib
// Tests that no trial's outcome is lost, however long the trial takes. Also tests what happens if a
// trial throws.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include "adaptive_fixture.h"

namespace lbvh {
namespace {

using test::Adaptive;
using test::AsAsked;
using test::Asked;
using test::Control;
using test::Fail;
using test::Flaky;
using test::TriesTheGpu;

/// A host pipeline whose step waits until the trial that began before the step has ended.
class SlowHost final : public Pipeline {
 public:
  explicit SlowHost(Control& control) : control_(control) {}
  void step(const StepInput& input, StepStats& stats) override {
    host_->step(input, stats);
    const int before = control_.fetches;  // a trial ends soon after it has read its pairs
    control_.release();
    for (int i = 0; i < 10 && control_.fetches == before; ++i) pause();
    pause();
    control_.hold();  // so the next trial is still running when the next step begins
  }
  void setPreviousPairs(View<const Pair> pairs) override { host_->setPreviousPairs(pairs); }
  View<const Pair> pairs() override { return host_->pairs(); }
  View<const Pair> added() const override { return host_->added(); }
  View<const Pair> removed() const override { return host_->removed(); }
  std::size_t memoryBytes() const override { return host_->memoryBytes(); }

 private:
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

  Control& control_;
  std::unique_ptr<Pipeline> host_ = makeHostPipeline(1, simdKernels());
};

// An earlier version never used an H100 if steps followed each other without a pause. Each trial
// ended while the next step ran, and another trial then replaced its outcome.
TEST_F(Adaptive, NoOutcomeOfATrialIsLost) {
  int told = 0;
  const auto makeGpu = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  made = std::make_unique<AdaptivePipeline>(std::make_unique<SlowHost>(control), nullptr, makeGpu,
                                            std::make_unique<TriesTheGpu>(&told));
  made->awaitGpu();
  while (control.steps < 6) step();
  EXPECT_GE(told, control.steps - 1) << "the last trial may still be running";
  control.release();
}

/// A pipeline without pairs that throws in each step.
class Throwing final : public Pipeline {
 public:
  explicit Throwing(std::function<void()> step) : step_(std::move(step)) {}
  void step(const StepInput&, StepStats&) override { step_(); }
  void setPreviousPairs(View<const Pair>) override {}
  View<const Pair> pairs() override { return {}; }
  View<const Pair> added() const override { return {}; }
  View<const Pair> removed() const override { return {}; }
  std::size_t memoryBytes() const override { return 0; }

 private:
  const std::function<void()> step_;
};

TEST_F(Adaptive, OutcomeOfAJobMustBeReadBeforeTheNextJob) {
  const auto make = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  PipelineThread thread(make);
  while (thread.isBusy()) std::this_thread::yield();
  EXPECT_FALSE(thread.isIdle());
  thread.await();
  EXPECT_TRUE(thread.isIdle());
  change(100);
  fail = Fail::before;
  const StepInput input{test::view(boxes), {}, {}, 1u << 20};
  thread.tryStep(input, {1, 1.0, {}}, PipelineThread::Clock::now());
  while (thread.isBusy()) std::this_thread::yield();
  EXPECT_FALSE(thread.isIdle());
  EXPECT_THROW(thread.await(), SpaceError);
  EXPECT_TRUE(thread.isIdle());
}

TEST_F(Adaptive, CopiesOfATrialAreCountedAndFreed) {
  const auto make = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  PipelineThread thread(make);
  thread.await();
  change(10000);
  const StepInput input{test::view(boxes), {}, {}, 1u << 24};
  thread.tryStep(input, {1, 1.0, {}}, PipelineThread::Clock::now());
  thread.await();
  EXPECT_TRUE(thread.takeTrial().has_value());
  const std::size_t copied = thread.memoryBytes();
  std::size_t own = 0;
  thread.run([&](Pipeline& gpu) { own = gpu.memoryBytes(); });
  EXPECT_EQ(thread.memoryBytes(), own) << "the thread's own steps use no copies";
  EXPECT_EQ(copied, own + boxes.size() * sizeof(Aabb));
}

// If a trial runs out of memory, the caller's steps continue. Many steps pass before the next
// trial, because each trial copies the boxes.
TEST_F(Adaptive, TrialWithoutMemoryIsRepeatedAfterManySteps) {
  Asked asked{Where::gpu, true};
  std::atomic<int> trials{0};
  const auto throws = [&] {
    ++trials;
    throw std::bad_alloc();
  };
  const auto makeHost = [&] { return NamedPipeline{std::make_unique<Throwing>(throws), "host"}; };
  const auto makeGpu = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  made = std::make_unique<AdaptivePipeline>(makeHostPipeline(1, simdKernels()), makeHost, makeGpu,
                                            std::make_unique<AsAsked>(asked));
  made->awaitGpu();
  while (trials == 0) step();
  for (int i = 0; i < 1000; ++i) step(50);
  EXPECT_EQ(trials, 1);
  while (trials == 1) step(50);
}

// If the GPU's step found few pairs and the host finds too many, the GPU's step was wrong.
TEST_F(Adaptive, TrialWithTooManyPairsIsADifference) {
  Asked asked{Where::gpu, true};
  const auto throws = [] { throw std::length_error("more than 5 overlapping pairs"); };
  const auto makeHost = [&] { return NamedPipeline{std::make_unique<Throwing>(throws), "host"}; };
  const auto makeGpu = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  made = std::make_unique<AdaptivePipeline>(makeHostPipeline(1, simdKernels()), makeHost, makeGpu,
                                            std::make_unique<AsAsked>(asked));
  made->awaitGpu();
  while (backend() != "host") step(50);
  EXPECT_EQ(made->info()->spaceReason, SpaceReason::failed);
  EXPECT_NE(reason().find(", but the host found too many"), std::string::npos) << reason();
}

}  // namespace
}  // namespace lbvh
