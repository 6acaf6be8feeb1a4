// SPDX-License-Identifier: Zlib
// The choice between host and GPU, fed with traces of both spaces' times: made up here with noise,
// spikes, jumps and drifts, or recorded (tests/data/step_times.csv).
#include "broadphase/choose/space_chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "support.h"

namespace lbvh {
namespace {

using test::Random;

struct Step {
  double host, gpu;
  std::size_t boxes = 10000, pairs = 50000;
};
using Trace = std::vector<Step>;

struct Outcome {
  double lost = 0;  ///< over the better space in hindsight, as a share of its time
  int switches = 0;
  int trials = 0;
  Where last = Where::host;
};

/// Runs a trace. A trial takes its own time, beside the steps. A switch costs a step half as much
/// again, for the pairs that are handed over.
Outcome run(const Trace& trace, double trialIsOff = 1) {
  FasterSpace chooser;
  Outcome outcome;
  double total = 0, host = 0, gpu = 0, trialLeft = 0, trialMs = 0;
  Where last = Where::host, tried = Where::host;
  for (const Step& step : trace) {
    const Where where = chooser.next();
    double ms = where == Where::host ? step.host : step.gpu;
    if (where != last) {
      ++outcome.switches;
      ms *= 1.5;
    }
    last = where;
    total += ms;
    host += step.host;
    gpu += step.gpu;
    const bool wasTrying = trialLeft > 0;
    trialLeft -= ms;
    if (wasTrying && trialLeft <= 0) chooser.tried(tried, trialMs);
    chooser.stepped(where, {ms, step.boxes, step.pairs});
    if (trialLeft <= 0 && chooser.wantsTrial()) {
      tried = otherThan(chooser.next());
      trialMs = trialLeft = (tried == Where::host ? step.host : step.gpu) * trialIsOff;
      ++outcome.trials;
    }
  }
  const double best = std::min(host, gpu);
  outcome.lost = (total - best) / best;
  outcome.last = last;
  return outcome;
}

/// Times that follow two curves, each with noise of its own and now and then a spike.
Trace made(std::size_t steps, double noise, std::uint32_t seed,
           const std::function<Step(double)>& at) {
  Random random(seed);
  const auto unit = [&] { return (random.bits() % 100001) / 1e5; };
  const auto disturb = [&](double& ms) {
    const double bell = unit() + unit() + unit() + unit() - 2;  // standard deviation 0.58
    ms *= std::exp(noise * bell / 0.58);
    if (unit() < 0.01) ms *= 4;
  };
  Trace trace;
  for (std::size_t i = 0; i < steps; ++i) {
    trace.push_back(at(static_cast<double>(i) / static_cast<double>(steps)));
    disturb(trace.back().host);
    disturb(trace.back().gpu);
  }
  return trace;
}

struct Curve {
  const char* name;
  std::function<Step(double)> at;
};

const std::vector<Curve>& curves() {
  static const std::vector<Curve> all = {
      {"the host is far faster",
       [](double) {
         return Step{1, 6};
       }},
      {"the GPU is far faster",
       [](double) {
         return Step{6, 1};
       }},
      {"the host is a little faster",
       [](double) {
         return Step{1, 1.15};
       }},
      {"the GPU is a little faster",
       [](double) {
         return Step{1.15, 1};
       }},
      {"they are equal",
       [](double) {
         return Step{2, 2};
       }},
      {"the host jumps up",
       [](double t) {
         return Step{t < 0.3 ? 1. : 5., 2};
       }},
      {"the host jumps down",
       [](double t) {
         return Step{t < 0.3 ? 5. : 1., 2};
       }},
      {"the GPU jumps up",
       [](double t) {
         return Step{2, t < 0.4 ? 1. : 5.};
       }},
      {"the GPU jumps down",
       [](double t) {
         return Step{2, t < 0.4 ? 5. : 1.};
       }},
      {"both jump and change places",
       [](double t) {
         return t < 0.5 ? Step{1, 2} : Step{8, 3, 60000, 400000};
       }},
      {"the host is disturbed for a while",
       [](double t) {
         return Step{t > 0.4 && t < 0.5 ? 6. : 1., 2};
       }},
      {"the host grows",
       [](double t) {
         return Step{1 + 4 * t, 2};
       }},
      {"the host shrinks",
       [](double t) {
         return Step{4 - 3 * t, 2};
       }},
      {"the GPU shrinks",
       [](double t) {
         return Step{2, 4 - 3.5 * t};
       }},
      {"both swing",
       [](double t) {
         return Step{2 + std::sin(8 * t), 2.2 - std::sin(8 * t)};
       }},
  };
  return all;
}

TEST(SpaceChooser, LosesLittleAndSeldomSwitches) {
  for (const Curve& curve : curves())
    for (const double noise : {0.0, 0.05, 0.2})
      for (const std::size_t steps : {2000u, 8000u})
        for (std::uint32_t seed = 1; seed <= 10; ++seed) {
          const Outcome outcome = run(made(steps, noise, seed, curve.at));
          const auto text = [&] {
            return std::string(curve.name) + ", noise " + std::to_string(noise) + ", " +
                   std::to_string(steps) + " steps, seed " + std::to_string(seed) + ": lost " +
                   std::to_string(outcome.lost) + ", " + std::to_string(outcome.switches) +
                   " switches, " + std::to_string(outcome.trials) + " trials";
          };
          EXPECT_LE(outcome.lost, 0.05) << text();
          EXPECT_LE(outcome.switches, 3) << text();
          EXPECT_LE(outcome.trials, static_cast<int>(steps / 3)) << text();
        }
}

// Trials run beside steps, so they can take longer than a step would, or leave something out.
TEST(SpaceChooser, FindsOutThatTrialsFlatterOrSlander) {
  const auto hostIsFaster = [](double) { return Step{1, 1.3}; };
  const auto gpuIsFaster = [](double) { return Step{3, 1}; };
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    const Outcome flattered = run(made(8000, 0.05, seed, hostIsFaster), 0.6);
    EXPECT_LE(flattered.lost, 0.05) << seed;
    EXPECT_LE(flattered.switches, 3) << seed;
    EXPECT_EQ(flattered.last, Where::host) << seed;
    const Outcome slandered = run(made(8000, 0.05, seed, gpuIsFaster), 1.8);
    EXPECT_LE(slandered.lost, 0.05) << seed;
    EXPECT_EQ(slandered.last, Where::gpu) << seed;
  }
}

TEST(SpaceChooser, ASmallWorldNeverWakesTheGpu) {
  FasterSpace chooser;
  for (int step = 0; step < 5000; ++step) {
    chooser.stepped(Where::host, {step % 500 == 0 ? 3.0 : 0.05, 100, 200});
    ASSERT_FALSE(chooser.wantsGpu() || chooser.wantsTrial());
  }
  EXPECT_STREQ(chooser.why(), "a GPU needs longer to begin");
  for (int step = 0; step < 10; ++step) chooser.stepped(Where::host, {2.0, 9000, 20000});
  EXPECT_TRUE(chooser.wantsGpu());
  EXPECT_STREQ(chooser.why(), "the GPU is being tried");
}

/// Steps on the host, and trials on the GPU at once, until the chooser begins or ends a series.
/// Returns how many steps.
int stepsUntilSeries(FasterSpace& chooser, bool begins, const Step& times) {
  int steps = 0;
  for (; chooser.wantsTrial() != begins && steps < 10000; ++steps) {
    chooser.stepped(Where::host, {times.host, times.boxes, times.pairs});
    if (chooser.wantsTrial()) chooser.tried(Where::gpu, times.gpu);
  }
  return steps;
}

TEST(SpaceChooser, TriesTheOtherSoonAfterTheSceneHasChanged) {
  const Step before{1, 2};
  for (const Step& after : {Step{1, 2, 40000, 50000}, Step{1, 2, 10000, 200000}, Step{2, 2}}) {
    FasterSpace chooser;
    for (int series = 0; series < 60; ++series) {
      stepsUntilSeries(chooser, true, before);
      stepsUntilSeries(chooser, false, before);
    }
    FasterSpace same = chooser;
    EXPECT_GT(stepsUntilSeries(same, true, before), 100) << "without a change";
    EXPECT_LE(stepsUntilSeries(chooser, true, after), 20);
  }
}

TEST(SpaceChooser, ASceneThatKeepsChangingIsNotTriedEachTime) {
  const auto often = [](double t) {
    return static_cast<int>(t * 160) % 2 == 0 ? Step{1, 4} : Step{2, 8, 30000, 150000};
  };
  EXPECT_LT(run(made(8000, 0.05, 3, often)).trials, 500);
}

TEST(SpaceChooser, TriesTheOtherMoreAndMoreRarely) {
  int trials[3];
  int i = 0;
  for (const std::size_t steps : {2000u, 20000u, 200000u})
    trials[i++] = run(made(steps, 0.05, 7, [](double) { return Step{1, 2}; })).trials;
  EXPECT_LT(trials[1], 6 * trials[0]);
  EXPECT_LT(trials[2], 4 * trials[1]);
  EXPECT_LT(trials[2], 2000);
}

// Times of 2,000 steps of three scenes: the host with one thread, and in the place of a GPU the
// interpreter with fewer objects, scaled to be so many times as fast.
TEST(SpaceChooser, LosesLittleOnRecordedTimes) {
  std::ifstream file(GPULBVH_TEST_DATA "/step_times.csv");
  std::string line;
  ASSERT_TRUE(std::getline(file, line)) << "no tests/data/step_times.csv";
  std::map<std::string, Trace> scenes;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string scene, host, gpu, boxes, pairs;
    for (std::string* field : {&scene, &host, &gpu, &boxes, &pairs})
      ASSERT_TRUE(std::getline(fields, *field, ',')) << line;
    scenes[scene].push_back(
        {std::stod(host), std::stod(gpu), std::stoul(boxes), std::stoul(pairs)});
  }
  EXPECT_GE(scenes.size(), 3u);
  for (const auto& [scene, trace] : scenes)
    for (const double faster : {0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.5, 2.0, 3.0, 4.0}) {
      const auto sum = [&trace = trace](double Step::*ms) {
        return std::accumulate(trace.begin(), trace.end(), 0.0,
                               [ms](double all, const Step& step) { return all + step.*ms; });
      };
      Trace scaled = trace;
      const double factor = sum(&Step::host) / sum(&Step::gpu) / faster;
      for (Step& step : scaled) step.gpu *= factor;
      const Outcome outcome = run(scaled);
      const std::string text = scene + ", GPU " + std::to_string(faster) +
                               " times as fast: " + std::to_string(outcome.switches) + " switches";
      EXPECT_LE(outcome.lost, 0.05) << text;
      EXPECT_LE(outcome.switches, 3) << text;
    }
}

}  // namespace
}  // namespace lbvh
