// SPDX-License-Identifier: Zlib
// Tests that no trial's outcome is lost, however long the trial takes.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "adaptive_fixture.h"

namespace lbvh {
namespace {

using test::Adaptive;
using test::Control;
using test::Flaky;
using test::TriesTheGpu;

/// A host whose step ends only after the trial that began before the step.
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

// On an H100 the GPU was never used if steps followed each other without a pause. Each trial ended
// while the next step ran, and another trial then replaced its outcome.
TEST_F(Adaptive, NoOutcomeOfATrialIsLost) {
  int told = 0;
  const auto makeGpu = [this] { return NamedPipeline{std::make_unique<Flaky>(control), "flaky"}; };
  made = std::make_unique<AdaptivePipeline>(std::make_unique<SlowHost>(control), nullptr, makeGpu,
                                            std::make_unique<TriesTheGpu>(&told));
  made->awaitGpu();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_GT(control.steps, 5);
  EXPECT_GE(told, control.steps - 1) << "the last trial may still be running";
  control.release();
}

}  // namespace
}  // namespace lbvh
