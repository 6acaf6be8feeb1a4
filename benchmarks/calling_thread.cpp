// SPDX-License-Identifier: Zlib
// calling_thread: measures the CPU time that steps on a GPU cost the calling thread. The work of
// the GPU and of its thread is excluded, so the PTX interpreter (tests/ptxvm) can be used in place
// of a GPU.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "broadphase/choose/adaptive.h"
#include "broadphase/core/changes.h"
#include "broadphase/core/test_hooks.h"
#include "broadphase/core/view_of.h"
#include "broadphase/host/step.h"
#include "support/broadphases.h"
#include "support/command_line.h"
#include "support/thread_time.h"
#include "walk.h"

namespace {

struct Settings {
  int boxes = 12486;
  int steps = 100;
  double moving = 1;
  bool standIn = false;
  bool untold = false;
  lbvh::Options options;
};

constexpr int kSettling = 20;  // number of steps at the start, in which buffers grow

using Bits = std::vector<std::uint64_t>;

/// A finder on the GPU, or a stand-in that runs the host's step on the GPU's thread.
class Finder {
 public:
  explicit Finder(const Settings& settings) {
    lbvh::testHooks.spin = lbvh::TestHooks::Spin::never;
    lbvh::Options options = settings.options;
    options.backend = lbvh::Backend::cuda;
    if (!settings.standIn) {
      requireBackend(options);
      finder_.emplace(options);
      return;
    }
    const auto make = [] {
      return lbvh::NamedPipeline{lbvh::makeHostPipeline(1, lbvh::simdKernels()), "stand-in"};
    };
    pipeline_ = std::make_unique<lbvh::AdaptivePipeline>(make().pipeline, make, make,
                                                         std::make_unique<lbvh::AlwaysGpu>());
    pipeline_->awaitGpu();
  }

  void step(const lbvh::StepInput& input) {
    if (finder_)
      finder_->update(input.boxes, {}, input.changed);
    else
      pipeline_->step(input, stats_);
  }

  std::size_t pairs() const { return finder_ ? finder_->stats().pairs : stats_.pairs; }
  std::string space() const {
    return finder_ ? finder_->stats().backend : pipeline_->info()->backend;
  }

 private:
  std::optional<lbvh::PairFinder> finder_;
  std::unique_ptr<lbvh::AdaptivePipeline> pipeline_;
  lbvh::StepStats stats_;
};

std::size_t mark(Bits& changed, const std::vector<lbvh::Aabb>& before,
                 const std::vector<lbvh::Aabb>& now) {
  changed.assign((now.size() + 63) / 64, 0);
  std::size_t count = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (lbvh::differ(before[i], now[i])) {
      changed[i / 64] |= std::uint64_t{1} << i % 64;
      ++count;
    }
  return count;
}

int run(const Settings& settings) {
  Walk walk(static_cast<std::uint32_t>(settings.boxes), 1, settings.moving);
  Finder finder(settings);
  std::vector<double> us;
  std::size_t changes = 0;
  for (int step = 0; step < kSettling + settings.steps; ++step) {
    const std::vector<lbvh::Aabb> before = walk.boxes();
    if (step > 0) walk.step();
    Bits changed;
    const std::size_t count = mark(changed, before, walk.boxes());
    lbvh::StepInput input{lbvh::viewOf(walk.boxes()), {}, {}, settings.options.maxPairs};
    if (!settings.untold) input.changed = lbvh::viewOf(changed);
    const ThreadStopwatch stopwatch;
    finder.step(input);
    if (step < kSettling) continue;
    us.push_back(1e3 * stopwatch.milliseconds());
    changes += count;
    if (finder.space() == "host")
      throw std::runtime_error("a step ran on the host instead of the GPU");
  }
  const double all = std::accumulate(us.begin(), us.end(), 0.0);
  const double steps = static_cast<double>(us.size());
  fmt::print(
      "summary space=\"{}\" boxes={} pairs={} changed={:.0f} steps={} mean_us={:.2f} "
      "most_us={:.2f} "
      "ns_a_changed_box={:.2f}\n",
      finder.space(), settings.boxes, finder.pairs(), static_cast<double>(changes) / steps,
      us.size(), all / steps, *std::max_element(us.begin(), us.end()),
      1e3 * all / static_cast<double>(std::max<std::size_t>(changes, 1)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Measures the CPU time that steps on a GPU cost the calling thread.",
                   "calling_thread");
  line.add("BOXES", settings.boxes, "number of boxes").range(1, 100000000).showDefault();
  line.add("--steps", settings.steps, "number of measured steps").range(1, 1000000).showDefault();
  line.add("--moving", settings.moving, "share of the boxes that move").showDefault();
  line.addFlag("--untold", settings.untold, "do not pass which boxes have changed");
  line.addFlag("--stand-in", settings.standIn,
               "run the host's step on the GPU's thread: for callgrind, and for many boxes");
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
