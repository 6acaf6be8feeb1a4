// SPDX-License-Identifier: Zlib
// one_place: times steps with boxes that are all at the same place. Every two boxes overlap, but
// their filters refuse about half of the pairs or more. These steps alternate with steps in which
// as many boxes, with the same filters, are spread out. In each step all boxes jump together, so
// that each step searches for the pairs of all boxes. The ratio is the mean time at one place,
// divided by the sum of the mean time of spread boxes and ten nanoseconds per pair.
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "broadphase/pair_finder.h"
#include "support/command_line.h"
#include "support/timing.h"
#include "walk.h"

namespace {

using lbvh::Aabb;
using lbvh::Filter;

constexpr double kNsAPair = 10;

/// A number of boxes, and filters that refuse about half of their pairs or more.
struct Case {
  const char* name;
  std::uint32_t boxes;
  std::function<Filter(std::uint32_t)> filterOf;
};

const Case kCases[] = {
    {"one group that refuses itself", 10000,
     [](std::uint32_t) {
       return Filter{1, 2};
     }},
    {"two groups that refuse themselves", 10000,
     [](std::uint32_t i) {
       return i % 2 == 0 ? Filter{1, 2} : Filter{2, 1};
     }},
    {"two groups that refuse all", 10000,
     [](std::uint32_t i) {
       return i % 2 == 0 ? Filter{1, 4} : Filter{2, 4};
     }},
    {"12 groups that accept the next", 10000,
     [](std::uint32_t i) {
       return Filter{1 << i % 12, 1 << (i + 1) % 12};
     }},
    {"12 groups that accept both neighbours", 10000,
     [](std::uint32_t i) {
       return Filter{1 << i % 12, 1 << (i + 1) % 12 | 1 << (i + 11) % 12};
     }},
    {"2,210 of one group and one static box", 2211,
     [](std::uint32_t i) {
       return i == 0 ? Filter{2, ~2} : Filter{1, 2};
     }},
    {"1,000 that ignore each other", 1000,
     [](std::uint32_t) {
       return Filter{1, 2};
     }},
};

/// A finder, its boxes and the times of its steps.
class Contestant {
 public:
  Contestant(const lbvh::Options& options, std::vector<Aabb> boxes, std::vector<Filter> filters)
      : finder_(options), boxes_(std::move(boxes)), filters_(std::move(filters)) {}

  void step(float by, bool isTimed) {
    for (Aabb& box : boxes_)
      for (int axis = 0; axis < 3; ++axis) box.min[axis] += by, box.max[axis] += by;
    const Stopwatch watch;
    finder_.update({boxes_.data(), boxes_.size()}, {filters_.data(), filters_.size()});
    if (isTimed) times_.push_back(watch.milliseconds());
  }
  double meanMs() const { return mean(times_); }
  std::size_t pairs() { return finder_.pairs().size(); }

 private:
  lbvh::PairFinder finder_;
  std::vector<Aabb> boxes_;
  std::vector<Filter> filters_;
  std::vector<double> times_;
};

void run(const Case& one, const lbvh::Options& options, int steps) {
  std::vector<Filter> filters;
  for (std::uint32_t i = 0; i < one.boxes; ++i) filters.push_back(one.filterOf(i));
  const Walk walk(one.boxes, 1);
  Contestant spread(options, walk.boxes(), filters);
  Contestant together(options, std::vector<Aabb>(one.boxes, {{0, 0, 0}, {1, 1, 1}}), filters);
  for (int i = -2; i < steps; ++i) {
    const float by = i % 2 == 0 ? 64.f : -64.f;
    together.step(by, i >= 0);
    spread.step(by, i >= 0);
  }
  const double pairsMs = kNsAPair * 1e-6 * double(together.pairs());
  std::printf(
      "summary case=\"%s\" objects=%u pairs=%zu one_place_ms=%.4f spread_ms=%.4f ratio=%.2f\n",
      one.name, one.boxes, together.pairs(), together.meanMs(), spread.meanMs(),
      together.meanMs() / (spread.meanMs() + pairsMs));
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 20;
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  options.threads = 1;
  CommandLine line("Times boxes at one place whose filters refuse most pairs.", "one_place");
  line.add("--steps", steps, "number of steps").range(1, 1000000).showDefault();
  return runProgram(line, argc, argv, [&] {
    for (const Case& one : kCases) run(one, options, steps);
    return 0;
  });
}
