// SPDX-License-Identifier: Zlib
// Tests AdaptivePipeline with the real GPU pipeline, on an interpreter that inverts bits in memory.
// Checks which pairs reach the program, when errors are noticed, and what is reported. Skipped
// without the interpreter.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "broadphase/choose/adaptive.h"
#include "broadphase/cuda/step.h"
#include "broadphase/host/step.h"
#include "cuda_fixture.h"
#include "device_scene_model.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

/// FasterSpace with the times of a GPU that is five times as fast as the host. Its clock measures
/// only these times, so the choice does not depend on the machine.
class FasterOnGpu final : public SpaceChooser {
 public:
  static constexpr double kGpuMs = 1, kHostMs = 5;
  /// The number of steps between two checks on the host, chosen so that checks take 1 % of the
  /// time.
  static constexpr int kStepsBetweenChecks = 99 * static_cast<int>(kGpuMs + kHostMs);

  Where next() const override { return faster_.next(); }
  bool wantsGpu() const override { return faster_.wantsGpu(); }
  bool wantsTrial() const override { return faster_.wantsTrial(); }
  void stepped(Where where, const StepFigures& figures) noexcept override {
    const double ms = msOn(where);
    faster_.stepped(where, {ms, figures.boxes, figures.pairs, nowMs_ += ms});
  }
  void tried(Where where, const TrialFigures&) noexcept override {
    faster_.tried(where, {msOn(where), msOn(otherThan(where)), kGpuMs + kHostMs});
  }
  double meanMs(Where where) const noexcept override { return faster_.meanMs(where); }
  SpaceReason reason() const noexcept override { return faster_.reason(); }
  const char* why() const noexcept override { return faster_.why(); }

 private:
  static double msOn(Where where) { return where == Where::gpu ? kGpuMs : kHostMs; }

  FasterSpace faster_;
  double nowMs_ = 0;
};

/// A program that knows only which pairs were reported as added and as removed.
class CudaTrust : public test::OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    control_ = reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
    if (control_ == nullptr) GTEST_SKIP() << "skipped: a real GPU loses no bits on request";
  }
  void TearDown() override {
    gpuWasWrong = false;
    if (control_ != nullptr) spoil(0);  // 0: no pair
  }

  /// Makes the next step write a wrong pair in place of the n-th pair that it finds.
  void spoil(long n) { ASSERT_EQ(control_("spoil PairsKernel", n), 0); }

  /// A step in which the last `moving` boxes change. @return the number of wrong and missing pairs
  std::size_t step(std::size_t moving) {
    std::vector<std::uint64_t> changed(kBoxes / 64 + 1, step_ == 0 ? ~std::uint64_t{0} : 0);
    for (std::size_t i = kBoxes - moving; i < kBoxes; ++i) {
      const float way = random_.uniform(-0.1f, 0.1f);
      for (float* corner : {boxes_[i].min, boxes_[i].max}) corner[i % 3] += way;
      changed[i / 64] |= std::uint64_t{1} << i % 64;
    }
    ++step_;
    StepStats stats;
    const StepInput input{view(boxes_), {}, {}, 1u << 20, view(changed)};
    adaptive_->step(input, stats);
    host_->step(input, stats);
    told_ = test::without(told_, toVector(adaptive_->removed()));
    for (const Pair pair : adaptive_->added()) told_.push_back(pair);
    std::sort(told_.begin(), told_.end());
    const Pairs right = toVector(host_->pairs());
    return test::without(told_, right).size() + test::without(right, told_).size();
  }
  /// Runs steps until the GPU is used and has been checked for the first time.
  void serveOnGpu() {
    for (int i = 0; i < 20000 && isOnHost(); ++i) {
      ASSERT_EQ(step(kBoxes), 0u);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // trials need time
    }
    ASSERT_FALSE(isOnHost()) << info().reason;
    for (int i = 0; i < 50; ++i) ASSERT_EQ(step(kBoxes), 0u);
  }

  const SpaceInfo& info() const { return *adaptive_->info(); }
  bool isOnHost() const { return info().backend == "host"; }
  bool isNoticed() const { return info().spaceReason == SpaceReason::failed; }
  void print(int wrongSteps, std::size_t mostWrong) const {
    std::printf("%s: %d of %d steps were wrong, in at most %zu pairs; %s\n",
                testing::UnitTest::GetInstance()->current_test_info()->name(), wrongSteps, step_,
                mostWrong, isNoticed() ? info().reason.c_str() : "not noticed");
  }

  static constexpr std::size_t kBoxes = 120;
  // Maximum number of steps until a check has ended. A check runs on another thread, which on a
  // busy machine may wait for thousands of steps.
  static constexpr int kInTime = FasterOnGpu::kStepsBetweenChecks + 20000;

 private:
  /// Boxes with odd indices are far from all others. So inverting the lowest bit of an index gives
  /// a wrong pair of two existing boxes. Also, no pair changes if only the last box moves.
  static Boxes makeBoxes(Random& random) {
    Boxes boxes = test::boxSets()[0].make(kBoxes, random);
    for (std::size_t i = 1; i < kBoxes; i += 2) boxes[i] = test::boxAt(1e4f * float(i), 0, 0, 1);
    return boxes;
  }
  static NamedPipeline makeHost() { return {makeHostPipeline(1, simdKernels()), "host"}; }
  static NamedPipeline makeGpu() { return {makeCudaPipeline({}), cudaDeviceName()}; }

  int (*control_)(const char*, long) = nullptr;
  Random random_{301};
  Boxes boxes_ = makeBoxes(random_);
  std::unique_ptr<AdaptivePipeline> adaptive_ = std::make_unique<AdaptivePipeline>(
      makeHost().pipeline, makeHost, makeGpu, std::make_unique<FasterOnGpu>());
  std::unique_ptr<Pipeline> host_ = makeHost().pipeline;
  Pairs told_;
  int step_ = 0;
};

// All boxes move, so the step after the wrong step finds all pairs anew, and its delta corrects the
// error.
TEST_F(CudaTrust, WrongPairIsCorrectedByTheNextStep) {
  ASSERT_NO_FATAL_FAILURE(serveOnGpu());
  int wrong = 0;
  std::size_t most = 0;
  const int steps = test::manySteps(1000);
  for (int i = 0; i < steps; ++i) {
    if (i == steps / 2) spoil(10);
    const std::size_t found = step(kBoxes);
    most = std::max(most, found);
    wrong += found > 0;
    ASSERT_TRUE(found == 0 || i == steps / 2) << i;
  }
  print(wrong, most);
  EXPECT_EQ(wrong, 1);
  EXPECT_LE(most, 2u) << "one pair instead of another";
}

// If boxes are at rest, a wrong pair stays until the next check, but not longer.
TEST_F(CudaTrust, WrongPairOfRestingBoxesIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(serveOnGpu());
  spoil(10);
  std::size_t most = step(kBoxes);
  int wrong = most > 0;
  while (!isNoticed() && wrong < kInTime) {
    const std::size_t found = step(1);
    most = std::max(most, found);
    wrong += found > 0;
    ASSERT_EQ(found == 0, isNoticed());
  }
  print(wrong, most);
  EXPECT_TRUE(isNoticed());
  EXPECT_LE(most, 4u);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(step(1), 0u) << i;
    ASSERT_TRUE(isOnHost());
  }
}

TEST_F(CudaTrust, WrongPairsInEveryStepAreNoticed) {
  ASSERT_NO_FATAL_FAILURE(serveOnGpu());
  int wrong = 0;
  std::size_t most = 0;
  while (!isNoticed() && wrong < kInTime) {
    spoil(10);
    const std::size_t found = step(kBoxes);
    most = std::max(most, found);
    wrong += found > 0;
    ASSERT_EQ(found == 0, isNoticed());
  }
  print(wrong, most);
  EXPECT_TRUE(isNoticed());
  EXPECT_EQ(info().reason.rfind("found wrong pairs in step ", 0), 0u) << info().reason;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(step(kBoxes), 0u) << i;
    ASSERT_TRUE(isOnHost());
  }
}

}  // namespace
}  // namespace lbvh
