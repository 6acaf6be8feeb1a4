// SPDX-License-Identifier: Zlib
// many_worlds: steps thousands of small worlds. Their boxes stay in the memory of the GPU, or of
// the host. One DevicePairFinder searches all worlds. Every 100 steps, and at the end, the
// program compares the pairs of one world with those that PairFinder finds.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "support/broadphases.h"
#include "support/command_line.h"
#include "support/output_files.h"
#include "support/progress_bar.h"
#include "support/recorded_boxes.h"
#include "support/system.h"
#include "support/timing.h"
#include "worlds/simulation.h"

namespace {

constexpr int kCompareEvery = 100;             // steps
constexpr int kRecordEvery = 10;               // steps
constexpr std::uint32_t kMaxRecorded = 256;    // worlds; with 64 boxes each, a frame has 400 kB
constexpr std::size_t kMaxBoxes = 1ull << 30;  // limit of DevicePairFinder

struct Settings {
  std::uint32_t worlds = 4096;
  std::uint32_t boxes = 64;
  int steps = 300;
  lbvh::Options options;
  std::string record;
  bool summary = false;
};

struct Place {
  std::unique_ptr<worlds::Space> space;
  lbvh::DeviceOptions options;
  const char* word;    ///< value of backend= in the line of --summary
  std::string reason;  ///< why this place was chosen; empty in a build without CUDA
};

Place choosePlace(const lbvh::Options& options) {
  Place place;
#if defined(GPULBVH_CUDA)
  const std::string whyNot = lbvh::whyUnavailable(lbvh::Backend::cuda);
  const bool isChosen = options.backend != lbvh::Backend::automatic;
  if (options.backend == lbvh::Backend::cuda || (!isChosen && whyNot.empty())) {
    place.space = worlds::makeCudaSpace();
    place.options.memory = lbvh::MemorySpace::device;
    place.word = "cuda";
    place.reason = isChosen ? "--backend cuda" : "there is a GPU";
    return place;
  }
  place.reason = isChosen ? "--backend host" : whyNot;
#endif
  place.space = worlds::makeHostSpace(options.threads);
  place.options.memory = lbvh::MemorySpace::host;
  place.options.threads = place.space->threads();
  place.word = "host";
  return place;
}

struct Run {
  std::vector<double> ms;  ///< milliseconds of each step
  int compared = 0;        ///< number of compared worlds
};

/// Compares one world. Successive calls visit all worlds in turn, unless the number of worlds is a
/// multiple of 7,919, which is a prime.
void compareOne(worlds::Simulation& simulation, Run& run) {
  const std::uint64_t turn = static_cast<std::uint64_t>(run.compared++) * 7919;
  const std::string difference =
      simulation.whatDiffers(static_cast<std::uint32_t>(turn % simulation.worldCount()));
  if (!difference.empty())
    throw std::runtime_error(fmt::format("step {}: {}", run.ms.size(), difference));
}

/// If the program is interrupted, the run ends after the current step.
Run runAll(const Settings& settings, worlds::Simulation& simulation) {
  std::optional<BoxWriter> recorder;
  if (!settings.record.empty())
    recorder.emplace(settings.record,
                     static_cast<std::uint32_t>((settings.steps - 1) / kRecordEvery + 1));
  Run run;
  ProgressBar bar(settings.steps);
  for (int i = 0; i < settings.steps && interruption() == 0; ++i) {
    bar.show(i);
    const Stopwatch watch;
    simulation.step();
    run.ms.push_back(watch.milliseconds());
    if (recorder && i % kRecordEvery == 0)
      recorder->write(simulation.sideBySide(std::min(settings.worlds, kMaxRecorded)));
    if ((i + 1) % kCompareEvery == 0 || i + 1 == settings.steps) compareOne(simulation, run);
  }
  return run;
}

void print(const Settings& settings, const Place& place, worlds::Simulation& simulation,
           const Run& run) {
  double ms = 0;
  for (const double one : run.ms) ms += one;
  const double perSecond = 1000 * static_cast<double>(run.ms.size()) / std::max(ms, 1e-9);
  const std::uint64_t hash = simulation.hash();
  fmt::print(
      "{:.2f} steps per second, each of all worlds: {:.0f} world steps per second\n"
      "{} pairs in the last step; {} searches ran again because their lists were too small\n"
      "{} worlds compared with PairFinder, each in a different step: all pairs are equal\n"
      "checksum of all positions and velocities: {:016x}\n",
      perSecond, perSecond * settings.worlds, simulation.pairs(), simulation.repeated(),
      run.compared, hash);
  if (!settings.summary) return;
  fmt::print(
      "summary worlds={} boxes={} backend={} threads={} objects={} steps={} pairs={} "
      "step_ms={:.6f} steps_per_second={:.3f} world_steps_per_second={:.1f} repeated={} "
      "compared={} hash={:016x} peak_rss_mb={:.1f}\n",
      settings.worlds, settings.boxes, place.word, place.space->threads(), simulation.objects(),
      run.ms.size(), simulation.pairs(), median(run.ms), perSecond, perSecond * settings.worlds,
      simulation.repeated(), run.compared, hash, peakMemoryMb());
}

int run(const Settings& settings) {
  requireBackend(settings.options);
  if (std::size_t{settings.worlds} * settings.boxes >= kMaxBoxes)
    throw UsageError(fmt::format("--worlds {} --boxes {}: more than {} boxes", settings.worlds,
                                 settings.boxes, kMaxBoxes));
  requireWritable({{"--record", settings.record}});
  catchInterruptions();
  Place place = choosePlace(settings.options);
  fmt::print("{} worlds of {} boxes, and a ground that is in all of them; {} steps of 1/60 s\n",
             settings.worlds, settings.boxes, settings.steps);
  fmt::print("on {}, {}{}\n", place.space->name(), threadsInWords(place.space->threads()),
             place.reason.empty() ? "" : "; " + place.reason);
  flushOutput();
  worlds::Simulation simulation(*place.space, place.options, settings.worlds, settings.boxes);
  const Run done = runAll(settings, simulation);
  print(settings, place, simulation, done);
  return 0;
}

void addOptions(CommandLine& line, Settings& settings) {
  line.add("--worlds", settings.worlds, "number of worlds").range(1u, 1u << 24).showDefault();
  line.add("--boxes", settings.boxes, "falling boxes in each world")
      .range(1u, 1u << 24)
      .showDefault();
  line.add("--steps", settings.steps, "steps of 1/60 s").range(1, 1000000).showDefault();
  line.addFinder(settings.options);
  line.add("--record", settings.record,
           "write each 10th step of the first 256 worlds, side by side, to this .aabb file")
      .notEmpty();
  line.addFlag("--summary", settings.summary, "print a line of figures for programs");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Runs many small worlds at once, in the memory of a GPU or of the host.",
                   "many_worlds");
  addOptions(line, settings);
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
