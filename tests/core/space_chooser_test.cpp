// SPDX-License-Identifier: Zlib
// Tests the choice between host and GPU. The tests use traces of step times on both, with noise,
// hitches, jumps and drifts.
#include "broadphase/choose/space_chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
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
  double lost = 0;  ///< extra time, relative to all steps on the faster of host and GPU
  int switches = 0;
  int trials = 0;
  double onGpuMs = 0, checkedMs = 0;  ///< time of the GPU's steps, and of the host's checks of them
  Where last = Where::host;
};

/// Runs a trace. Trials run in parallel with the steps. The first step after a switch takes 2 times
/// as long on the host, and 1.5 times as long on the GPU.
Outcome run(const Trace& trace, double trialIsOff = 1) {
  FasterSpace chooser;
  Outcome outcome;
  double total = 0, host = 0, gpu = 0, trialLeft = 0, trialMs = 0, servedMs = 0;
  Where last = Where::host, tried = Where::host;
  for (const Step& step : trace) {
    const Where where = chooser.next();
    double ms = where == Where::host ? step.host : step.gpu;
    if (where != last) {
      ++outcome.switches;
      ms *= where == Where::host ? 2 : 1.5;
    }
    last = where;
    total += ms;
    if (where == Where::gpu) outcome.onGpuMs += ms;
    host += step.host;
    gpu += step.gpu;
    const bool wasTrying = trialLeft > 0;
    trialLeft -= ms;
    if (wasTrying && trialLeft <= 0) chooser.tried(tried, {trialMs, servedMs, trialMs});
    chooser.stepped(where, {ms, step.boxes, step.pairs, total});
    if (trialLeft > 0 || !chooser.wantsTrial() || where != chooser.next()) continue;
    tried = otherThan(where);
    servedMs = ms;
    trialMs = trialLeft = (tried == Where::host ? step.host : step.gpu) * trialIsOff;
    if (where == Where::gpu) outcome.checkedMs += trialMs;
    ++outcome.trials;
  }
  const double best = std::min(host, gpu);
  outcome.lost = (total - best) / best;
  outcome.last = last;
  return outcome;
}

/// Times that follow two curves, each with its own noise and occasional spikes.
Trace made(std::size_t steps, double noise, std::uint32_t seed,
           const std::function<Step(double)>& at) {
  Random random(seed);
  const auto unit = [&] { return (random.bits() % 100001) / 1e5; };
  const auto disturb = [&](double& ms) {
    const double bell = unit() + unit() + unit() + unit() - 2;  // standard deviation 0.58
    ms *= std::exp(noise * bell / 0.58);
    if (unit() < 0.01) ms *= 4;
    if (unit() < 0.001) ms *= 10;
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
          EXPECT_LE(outcome.switches, 10) << text();
          EXPECT_LE(outcome.trials, static_cast<int>(steps / 3 + 64)) << text();
        }
}

// While the GPU runs the steps, checks on the host take at most a hundredth of the GPU's time,
// except for the first checks.
TEST(SpaceChooser, ChecksTheGpuForAHundredthOfTheTime) {
  for (const double host : {1.2, 3.0, 40.0}) {
    const Outcome outcome = run(made(20000, 0.05, 5, [&](double) { return Step{host, 1}; }));
    EXPECT_EQ(outcome.last, Where::gpu);
    EXPECT_LE(outcome.checkedMs, 0.0101 * outcome.onGpuMs + 5 * host) << host;
    EXPECT_GE(outcome.checkedMs, 0.008 * outcome.onGpuMs) << host;
  }
}

// The numbers of boxes and pairs change by a factor of five every 70 steps.
TEST(SpaceChooser, ChangesInTurnsCauseFewTrials) {
  for (const double host : {2.0, 40.0}) {
    const auto often = [&](double t) {
      return static_cast<int>(t * 20000) / 70 % 2 == 0 ? Step{host, 1}
                                                       : Step{host, 1, 50000, 250000};
    };
    const Outcome outcome = run(made(20000, 0.05, 5, often));
    EXPECT_EQ(outcome.last, Where::gpu);
    EXPECT_LE(outcome.checkedMs, 0.0202 * outcome.onGpuMs + 7 * host) << host;
  }
  const auto often = [](double t) {
    return static_cast<int>(t * 20000) / 70 % 2 == 0 ? Step{1, 4} : Step{2, 8, 50000, 250000};
  };
  EXPECT_LE(run(made(20000, 0.05, 5, often)).trials, 20000 / 20);
}

TEST(SpaceChooser, ChecksTheGpuAtOnceWhenTheSceneHasGrownFourfold) {
  FasterSpace chooser;
  double now = 0;
  while (chooser.next() == Where::host) {
    chooser.stepped(Where::host, {5, 1000, 5000, now += 5});
    chooser.tried(Where::gpu, {1, 5, 1});
  }
  chooser.stepped(Where::gpu, {1, 1000, 5000, ++now});
  EXPECT_TRUE(chooser.wantsTrial());
  chooser.tried(Where::host, {5, 1, 1000});
  for (int step = 0; step < 100; ++step) {
    chooser.stepped(Where::gpu, {1, 3000, 15000, ++now});
    ASSERT_FALSE(chooser.wantsTrial()) << "too soon after an expensive trial";
  }
  chooser.stepped(Where::gpu, {1, 5000, 15000, ++now});
  EXPECT_TRUE(chooser.wantsTrial());
}

// A GPU that was idle is slow at first, so its first milliseconds are ignored.
TEST(SpaceChooser, LetsTheGpuWarmUp) {
  FasterSpace chooser;
  int trials = 0;
  while (!chooser.wantsTrial()) chooser.stepped(Where::host, {1, 1000, 1000});
  for (double worked = 0; worked < 5; ++trials) {
    chooser.stepped(Where::host, {1, 1000, 1000});
    chooser.tried(Where::gpu, {0.5, 1, 0.5});
    worked += 0.5;
    EXPECT_EQ(chooser.meanMs(Where::gpu), 0) << worked;
  }
  chooser.tried(Where::gpu, {0.25, 1, 0.25});
  EXPECT_EQ(chooser.meanMs(Where::gpu), 0.25);
  EXPECT_EQ(chooser.meanMs(Where::host), 1);
}

// The median of these trials is a third of the host's time, but their mean is greater than the
// host's time.
TEST(SpaceChooser, CountsHitches) {
  FasterSpace chooser;
  for (int step = 0; step < 3000; ++step) {
    chooser.stepped(Where::host, {3, 1000, 1000});
    if (chooser.wantsTrial()) chooser.tried(Where::gpu, {step % 4 == 0 ? 13.0 : 1.0, 3, 1});
    ASSERT_EQ(chooser.next(), Where::host) << step;
  }
  EXPECT_GT(chooser.meanMs(Where::gpu), 3);
}

// Trials run in parallel with steps, so they may take longer than a step would, or do less than a
// step.
TEST(SpaceChooser, CorrectsTrialsThatAreTooFastOrTooSlow) {
  const auto hostIsFaster = [](double) { return Step{1, 1.3}; };
  const auto gpuIsFaster = [](double) { return Step{3, 1}; };
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    const Outcome flattered = run(made(8000, 0.05, seed, hostIsFaster), 0.6);
    EXPECT_LE(flattered.lost, 0.05) << seed;
    EXPECT_EQ(flattered.last, Where::host) << seed;
    const Outcome slandered = run(made(8000, 0.05, seed, gpuIsFaster), 1.8);
    EXPECT_LE(slandered.lost, 0.05) << seed;
    EXPECT_EQ(slandered.last, Where::gpu) << seed;
  }
}

TEST(SpaceChooser, SmallWorldNeverStartsTheGpu) {
  FasterSpace chooser;
  for (int step = 0; step < 5000; ++step) {
    chooser.stepped(Where::host, {step % 500 == 0 ? 3.0 : 0.05, 100, 200});
    ASSERT_FALSE(chooser.wantsGpu() || chooser.wantsTrial());
  }
  EXPECT_STREQ(chooser.why(), "steps take less time than the launches on a GPU");
  for (int step = 0; step < 10; ++step) chooser.stepped(Where::host, {2.0, 9000, 20000});
  EXPECT_TRUE(chooser.wantsGpu());
  EXPECT_STREQ(chooser.why(), "the GPU is being tried");
}

/// Runs steps on the host until a series of trials begins or ends. Whenever a trial is wanted, it
/// runs on the GPU. Returns the number of steps.
int stepsUntilSeries(FasterSpace& chooser, bool begins, const Step& times) {
  int steps = 0;
  for (; chooser.wantsTrial() != begins && steps < 10000; ++steps) {
    chooser.stepped(Where::host, {times.host, times.boxes, times.pairs});
    if (chooser.wantsTrial()) chooser.tried(Where::gpu, {times.gpu, times.host, times.gpu});
  }
  return steps;
}

TEST(SpaceChooser, TriesTheOtherSpaceSoonAfterAFourfoldChange) {
  const Step before{1, 2}, alike{1, 2, 30000, 150000};
  for (const Step& after : {Step{1, 2, 41000, 50000}, Step{1, 2, 10000, 210000},
                            Step{1, 2, 2000, 50000}, Step{1, 2, 10000, 12000}}) {
    FasterSpace chooser;
    for (int series = 0; series < 60; ++series) {
      stepsUntilSeries(chooser, true, before);
      stepsUntilSeries(chooser, false, before);
    }
    for (int step = 0; step < 70; ++step)
      chooser.stepped(Where::host, {before.host, before.boxes, before.pairs});
    FasterSpace same = chooser;
    EXPECT_GT(stepsUntilSeries(same, true, alike), 100) << "a threefold change";
    EXPECT_LE(stepsUntilSeries(chooser, true, after), 1);
  }
}

TEST(SpaceChooser, FrequentChangesDoNotEachCauseATrial) {
  const auto often = [](double t) {
    return static_cast<int>(t * 160) % 2 == 0 ? Step{1, 4} : Step{2, 8, 50000, 250000};
  };
  EXPECT_LT(run(made(8000, 0.05, 3, often)).trials, 8000 / 4);
}

TEST(SpaceChooser, TrialsBecomeRarer) {
  int trials[3];
  int i = 0;
  for (const std::size_t steps : {2000u, 20000u, 200000u})
    trials[i++] = run(made(steps, 0.05, 7, [](double) { return Step{1, 2}; })).trials;
  EXPECT_LT(trials[1], 6 * trials[0]);
  EXPECT_LT(trials[2], 4 * trials[1]);
  EXPECT_LT(trials[2], 3000);
}

}  // namespace
}  // namespace lbvh
