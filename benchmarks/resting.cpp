// SPDX-License-Identifier: Zlib
// resting: times a PairFinder. None, one or a hundred of its boxes move. Each step passes the bits
// of the changed boxes to update(), and then calls pairs(). Prints microseconds per step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "broadphase/pair_finder.h"
#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

struct Settings {
  int boxes = 100000, steps = 1000;
};

constexpr int kWarmUp = 100;  // steps

/// Unit boxes in a cube, three pairs per box. Some of them move by up to 0.05 per step and axis.
class Scene {
 public:
  Scene(const Settings& settings, int moving)
      : boxes_(static_cast<std::size_t>(settings.boxes)), changed_((boxes_.size() + 63) / 64) {
    const auto side = btScalar(1.1 * std::cbrt(settings.boxes));
    for (lbvh::Aabb& box : boxes_)
      for (int axis = 0; axis < 3; ++axis) {
        box.min[axis] = static_cast<float>(random_.between(0, side));
        box.max[axis] = box.min[axis] + 1;
      }
    for (int k = 0; k < moving; ++k)
      moving_.push_back(static_cast<std::size_t>(random_.below(settings.boxes)));
    for (const std::size_t i : moving_) changed_[i / 64] |= std::uint64_t{1} << i % 64;
  }

  void move() {
    for (const std::size_t i : moving_)
      for (int axis = 0; axis < 3; ++axis) {
        const auto by = static_cast<float>(random_.between(btScalar(-0.05), btScalar(0.05)));
        boxes_[i].min[axis] += by;
        boxes_[i].max[axis] += by;
      }
  }

  lbvh::View<const lbvh::Aabb> boxes() const { return {boxes_.data(), boxes_.size()}; }
  lbvh::View<const std::uint64_t> changed() const { return {changed_.data(), changed_.size()}; }

 private:
  Random random_{1};
  std::vector<lbvh::Aabb> boxes_;
  std::vector<std::uint64_t> changed_;
  std::vector<std::size_t> moving_;
};

void measure(const Settings& settings, int moving) {
  lbvh::Options options;
  options.threads = 1;
  options.backend = lbvh::Backend::host;
  lbvh::PairFinder finder(options);
  Scene scene(settings, moving);
  std::vector<double> times;
  std::size_t pairs = 0, changes = 0;
  for (int step = -kWarmUp; step < settings.steps; ++step) {
    scene.move();
    const Stopwatch watch;
    finder.update(scene.boxes(), {}, scene.changed());
    pairs = finder.pairs().size();
    if (step < 0) continue;
    times.push_back(1e3 * watch.milliseconds());
    changes += finder.added().size() + finder.removed().size();
  }
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / settings.steps;
  std::printf(
      "summary boxes=%d moving=%d pairs=%zu changes=%.2f median_us=%.2f mean_us=%.2f p95_us=%.2f\n",
      settings.boxes, moving, pairs, static_cast<double>(changes) / settings.steps, median(times),
      mean, percentile(times, 0.95));
}

int run(const Settings& settings) {
  for (const int moving : {0, 1, 100}) measure(settings, std::min(moving, settings.boxes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Times updates of a PairFinder if few or no boxes move.", "resting");
  line.add("BOXES", settings.boxes, "number of boxes").range(1, 10000000).showDefault();
  line.add("--steps", settings.steps, "number of steps").range(1, 1000000).showDefault();
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
