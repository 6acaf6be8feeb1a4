// SPDX-License-Identifier: Zlib
// The fixture for tests of AdaptivePipeline, which runs on the host or the GPU. The "GPU" of these
// tests is the host, so the tests run everywhere. On request this "GPU" fails, waits or finds wrong
// pairs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broadphase/choose/adaptive.h"
#include "broadphase/core/shared_work.h"
#include "broadphase/core/space_error.h"
#include "broadphase/host/step.h"
#include "gate.h"
#include "support.h"

namespace lbvh::test {

enum class Fail { never, before, after, forGood };

/// How a test controls its "GPU".
struct Control {
  std::atomic<Fail> fail{Fail::never};
  Gate gate{true};  ///< while it is closed, the "GPU" waits in its constructor and in each step
  std::atomic<Fail> failsFetch{Fail::never};
  std::atomic<int> steps{0}, fetches{0}, makes{0};
  std::atomic<int> alive{0};           ///< number of "GPUs" that exist
  std::atomic<bool> isWrong{false};    ///< whether the "GPU" finds no pairs of box 7
  std::atomic<bool> isGarbage{false};  ///< whether the "GPU" returns invalid pairs()
  std::atomic<int> delayMs{0};

  void hold() { gate.close(); }
  void release() { gate.open(); }
};

/// The "GPU", whose steps fail before or after their work if Control says so.
class Flaky final : public Pipeline {
 public:
  explicit Flaky(Control& control) : control_(control) {
    ++control.alive;
    control.gate.pass();
  }
  ~Flaky() override { --control_.alive; }
  void step(const StepInput& input, StepStats& stats) override {
    control_.gate.pass();
    if (control_.delayMs > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(control_.delayMs));
    ++control_.steps;
    const Fail fail = control_.fail;
    if (fail == Fail::before || fail == Fail::forGood)
      throw SpaceError("failed before", fail == Fail::forGood);
    if (input.beside != nullptr) input.beside->help();
    stepRightOrWrong(input, stats);
    if (fail != Fail::after) return;
    stats.totalMs = -1;  // would remain in `stats`, because the host's step writes no totalMs
    throw SpaceError("failed after", false);
  }
  void setPreviousPairs(View<const Pair> pairs) override { host_->setPreviousPairs(pairs); }
  View<const Pair> pairs() override {
    ++control_.fetches;
    const Fail fail = control_.failsFetch;
    if (fail != Fail::never) throw SpaceError("failed to copy", fail == Fail::forGood);
    static const Pair garbage[] = {{5, 1000000}, {9, 9}, {3, 2}, {1, 2}, {0, 1}, {0, 1}, {4, 201}};
    return control_.isGarbage ? View<const Pair>{garbage, std::size(garbage)} : host_->pairs();
  }
  View<const Pair> added() const override { return host_->added(); }
  View<const Pair> removed() const override { return host_->removed(); }
  std::size_t memoryBytes() const override { return host_->memoryBytes(); }

 private:
  void stepRightOrWrong(StepInput input, StepStats& stats) {
    Boxes seen(input.boxes.begin(), input.boxes.end());
    if (control_.isWrong && seen.size() > 7)
      seen[7].min[0] = std::numeric_limits<float>::quiet_NaN();
    input.boxes = view(seen);
    input.changed = {};
    host_->step(input, stats);
  }

  Control& control_;
  std::unique_ptr<Pipeline> host_ = makeHostPipeline(1, simdKernels());
};

/// Chooses randomly between host and GPU, and decides randomly whether to try the other one.
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
  void tried(Where, const TrialFigures&) noexcept override {}
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override { return "by chance"; }

 private:
  Random random_;
  Where next_ = Where::host;
  bool wantsTrial_ = false;
};

/// How a test controls its chooser.
struct Asked {
  Where serving = Where::gpu;
  bool wantsTrial = false;  ///< a trial with right pairs sets this to false
};

class AsAsked final : public SpaceChooser {
 public:
  explicit AsAsked(Asked& asked) : asked_(asked) {}
  Where next() const override { return asked_.serving; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return asked_.wantsTrial; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, const TrialFigures&) noexcept override { asked_.wantsTrial = false; }
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override { return "as requested"; }

 private:
  Asked& asked_;
};

/// The host runs the steps, and after each step a trial runs on the GPU.
class TriesTheGpu final : public SpaceChooser {
 public:
  /// @param told counts the trials whose outcome was reported; may be null
  explicit TriesTheGpu(int* told = nullptr) : told_(told) {}
  Where next() const override { return Where::host; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return true; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, const TrialFigures&) noexcept override {
    if (told_ != nullptr) ++*told_;
  }
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override { return "by decree"; }

 private:
  int* const told_;
};

inline std::unique_ptr<AdaptivePipeline> makeAdaptive(Control& control,
                                                      std::unique_ptr<SpaceChooser> chooser) {
  const auto makeHost = [] { return NamedPipeline{makeHostPipeline(1, simdKernels()), "host"}; };
  const auto makeGpu = [&control] {
    ++control.makes;
    if (control.fail == Fail::forGood) throw SpaceError("no such thing", true);
    return NamedPipeline{std::make_unique<Flaky>(control), "flaky"};
  };
  return std::make_unique<AdaptivePipeline>(makeHost().pipeline, makeHost, makeGpu,
                                            std::move(chooser));
}

class Adaptive : public testing::Test {
 protected:
  Adaptive() { gpuServes(); }
  ~Adaptive() override { gpuWasWrong = false; }

  /// Makes new pipelines. `made` uses the GPU as long as the GPU does not fail.
  void gpuServes() {
    made = makeAdaptive(control, std::make_unique<AlwaysGpu>());
    made->awaitGpu();
    undisturbed = makeHostPipeline(1, simdKernels());
  }
  void chosenBy(std::unique_ptr<SpaceChooser> chooser) {
    made = makeAdaptive(control, std::move(chooser));
    undisturbed = makeHostPipeline(1, simdKernels());
  }

  /// Changes some boxes, runs a step, and compares the result with that of a pipeline that never
  /// fails.
  void step(std::size_t n = 200) {
    change(n);
    const bool tells = random.below(2) == 0;  // whether to pass `changed`
    std::vector<std::uint8_t> removedObjects(random.below(3) == 0 ? n : 0);
    for (auto& flag : removedObjects) flag = random.below(20) == 0;
    StepStats stats;
    StepInput input{view(boxes), {}, view(removedObjects), 1u << 20};
    if (tells) input.changed = view(changed);
    made->step(input, stats);
    changed.clear();
    ASSERT_EQ(stats.totalMs, 0) << "figures of the failed step";
    input.changed = {};
    undisturbed->step(input, stats);
    expectTheSame();
  }

  void change(std::size_t n) {
    changed.resize(n / 64 + 1, boxes.size() == n ? 0 : ~std::uint64_t{0});
    if (boxes.size() != n) boxes = boxSets()[0].make(n, random);
    for (int change = 0; change < 30 && n > 0; ++change) {
      const std::size_t i = random.below(static_cast<std::uint32_t>(n));
      boxes[i] = boxes[random.below(static_cast<std::uint32_t>(n))];
      changed[i / 64] |= std::uint64_t{1} << i % 64;
    }
  }

  /// Unless `asksAlways`, reads the pairs only after some steps, because the GPU copies them only
  /// when they are read.
  void expectTheSame() {
    const bool asks = asksAlways || random.below(3) == 0;
    if (asks) ASSERT_EQ(toVector(made->pairs()), toVector(undisturbed->pairs()));
    ASSERT_EQ(toVector(made->added()), toVector(undisturbed->added()));
    ASSERT_EQ(toVector(made->removed()), toVector(undisturbed->removed()));
  }

  const std::string& backend() const { return made->info()->backend; }
  const std::string& reason() const { return made->info()->reason; }

  Random random{101};
  Control control;
  std::atomic<Fail>& fail = control.fail;
  Boxes boxes;
  std::vector<std::uint64_t> changed;  ///< changes since the last step that did not throw
  bool asksAlways = false;
  std::unique_ptr<AdaptivePipeline> made;
  std::unique_ptr<Pipeline> undisturbed;
};

}  // namespace lbvh::test
