// SPDX-License-Identifier: Zlib
// rigid_bodies: runs a scene with one broad phase, or with several alternately, and prints the
// times of the parts of a step. Can record the boxes of each step for replay, and write a report
// and a picture.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "report/html_report.h"
#include "report/report.h"
#include "report/scene_picture.h"
#include "scenes/aabb_cost.h"
#include "scenes/scenes.h"
#include "support/broadphases.h"
#include "support/command_line.h"
#include "support/output_files.h"
#include "support/progress_bar.h"
#include "support/recorded_boxes.h"
#include "support/system.h"

namespace {

struct Settings {
  std::string scene = scenes().front().name;
  std::string broadphase = "gpu-lbvh";
  std::vector<std::string> compare;
  lbvh::Options options;
  int steps = 120;
  std::optional<int> objects;
  std::uint32_t seed = 1;
  std::string csv;
  std::string record;
  std::string report;
  std::string picture;
  std::vector<int> sizes;
  bool isKeptAwake = false;
  bool onBulletsThreads = false;
  bool list = false;
  bool summary = false;
};

constexpr const char* kAll = "all";

int list() {
  for (const Scene& scene : scenes()) {
    fmt::print("{:<11}{:>7} objects  {}\n", scene.name, scene.defaultObjects, scene.stresses);
  }
  fmt::print("broad phases: {}\n", fmt::join(broadphaseNames(), ", "));
  return 0;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct LiveRun {
  std::unique_ptr<World> world;
  Run run;
  Memory memory;  ///< allocated memory after the last step
};

LiveRun start(const Settings& settings, const Scene& scene, const std::string& broadphase,
              int objects) {
  LiveRun live;
  live.run.broadphase = broadphase;
  live.run.objects = objects;
  live.world = std::make_unique<World>(
      makeBroadphase(broadphase, setupFor(live.run.objects, settings.options)),
      settings.onBulletsThreads);
  scene.build(*live.world, {live.run.objects, settings.seed});
  if (settings.isKeptAwake) live.world->keepAwake();
  live.run.space = spaceOf(live.world->broadphase());
  live.memory = memoryOf(live.world->broadphase());
  const int still = live.world->staticObjects();
  fmt::print("{}: {} moving and {} static objects; {}\n", broadphase, live.world->objects() - still,
             still, live.run.space.details);
  return live;
}

StepFacts factsOf(LiveRun& live) {
  const StepTimes& times = live.world->times();
  StepFacts facts{times.broadphase(), times.broadphaseCpu};
  const Memory memory = memoryOf(live.world->broadphase());
  facts.grew = memory.pairs > live.memory.pairs || memory.finder > live.memory.finder;
  live.memory = memory;
  if (const lbvh::Stats* stats = statsOf(live.world->broadphase())) {
    facts.objects = stats->objects;
    facts.searched = stats->searched;
  }
  return facts;
}

void step(LiveRun& live) {
  live.world->step();
  requireFinished(live.world->broadphase(), live.run.broadphase);
  live.run.steps.push_back(live.world->times());
  live.run.facts.push_back(factsOf(live));
  live.run.getAabb.push_back(millisecondsOfAabbs(live.world->bullet()));
  live.run.pairs = live.world->pairs();
  live.run.pairCounts.push_back(live.run.pairs);
}

/// Steps the worlds in turn, so that other load on the machine affects all of them equally.
/// If the program is interrupted, the run ends after the current step.
void runAll(const Settings& settings, std::vector<LiveRun>& lives, std::optional<CsvFile>& csv,
            std::optional<BoxWriter>& recorder) {
  ProgressBar bar(settings.steps);
  for (int i = 0; i < settings.steps; ++i) {
    bar.show(i);
    for (LiveRun& live : lives) {
      step(live);
      if (csv) csv->write(i, live.run);
    }
    if (recorder) recorder->write(lives.front().world->boxes());
    if (interruption() != 0) return;
  }
}

/// The broad phases to run with this many objects. `all` leaves out broad phases that would take
/// too long, and prints a message for each.
std::vector<std::string> chosen(const Settings& settings, int objects,
                                std::vector<LeftOut>& leftOut) {
  if (settings.compare.empty()) return {settings.broadphase};
  if (settings.compare != std::vector<std::string>{kAll}) return settings.compare;
  std::vector<std::string> names;
  for (const std::string& name : broadphaseNames()) {
    const std::string reason = whyLeftOut(name, objects);
    if (reason.empty()) {
      names.push_back(name);
      continue;
    }
    fmt::print("{} is left out: {}\n", name, reason);
    leftOut.push_back({name, objects, reason});
  }
  return names;
}

std::vector<Run> runAtSize(const Settings& settings, const Scene& scene, int objects,
                           const std::vector<std::string>& names) {
  std::optional<CsvFile> csv;
  if (!settings.csv.empty()) csv.emplace(settings.csv);
  std::optional<BoxWriter> recorder;
  if (!settings.record.empty()) {
    recorder.emplace(settings.record, static_cast<std::uint32_t>(settings.steps));
  }
  std::vector<LiveRun> lives;
  for (const std::string& name : names) lives.push_back(start(settings, scene, name, objects));
  flushOutput();
  runAll(settings, lives, csv, recorder);
  if (!settings.picture.empty() && interruption() == 0)
    writeScenePicture(settings.picture, *lives.front().world);

  std::vector<Run> runs;
  for (LiveRun& live : lives) {
    // The broad phase may have moved to the host.
    live.run.space = spaceOf(live.world->broadphase());
    live.run.hash = live.world->hash();
    runs.push_back(std::move(live.run));
  }
  printTable(runs);
  printTails(runs);
  if (settings.summary)
    for (const Run& one : runs) printSummary(scene.name, one);
  return runs;
}

int run(const Settings& settings, const std::string& command) {
  if (settings.list) return list();
  if (settings.compare.size() > 1 && contains(settings.compare, kAll))
    throw UsageError("--compare: `all` must stand alone");
  requireBackend(settings.options,
                 contains(settings.compare, "gpu-lbvh") || contains(settings.compare, kAll) ||
                     (settings.compare.empty() && settings.broadphase == "gpu-lbvh"));
  const Scene& scene = *findScene(settings.scene.c_str());
  if (settings.onBulletsThreads && scene.build == buildSoftBodies)
    throw UsageError("--bullet-threads: btDiscreteDynamicsWorldMt has no soft bodies");
  requireWritable({{"--csv", settings.csv},
                   {"--record", settings.record},
                   {"--report", settings.report},
                   {"--picture", settings.picture}});
  catchInterruptions();

  Comparison comparison{&scene, command, settings.steps, settings.seed, {}, {}};
  std::vector<int> sizes = settings.sizes;
  if (sizes.empty()) sizes = {settings.objects.value_or(scene.defaultObjects)};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  fmt::print("scene {}, {} steps of 1/60 s, seed {}{}{}\n", scene.name, settings.steps,
             settings.seed, settings.isKeptAwake ? "; nothing falls asleep" : "",
             settings.onBulletsThreads ? "; btDiscreteDynamicsWorldMt" : "");
  flushOutput();
  for (const int objects : sizes) {
    const auto names = chosen(settings, objects, comparison.leftOut);
    comparison.sizes.push_back({objects, runAtSize(settings, scene, objects, names)});
    // No report is written for an incomplete comparison. runProgram reports the interruption.
    if (interruption() != 0) return 0;
  }
  printComparison(comparison.sizes.back().runs);
  if (!settings.report.empty()) {
    writeHtmlReport(settings.report, comparison);
    fmt::print("report written to {}\n", settings.report);
  }
  if (!settings.picture.empty()) fmt::print("picture written to {}\n", settings.picture);
  return 0;
}

/// The command, quoted for a shell.
std::string quoted(int argc, char** argv) {
  std::string line = "rigid_bodies";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = word.find_first_of(" \t\n'\"\\$`*?[](){}<>|&;#~!") == std::string::npos;
    line.append(plain && !word.empty() ? " " + word : " '" + word + "'");
  }
  return line;
}

void addOptions(CommandLine& line, Settings& settings) {
  line.add("--scene", settings.scene, "what to simulate; see --list")
      .oneOf(sceneNames())
      .showDefault();
  const Option one =
      line.add("--broadphase", settings.broadphase, "broad phase that finds the pairs")
          .oneOf(broadphaseNames())
          .showDefault();
  std::vector<std::string> comparable = broadphaseNames();
  comparable.emplace_back(kAll);
  line.add("--compare", settings.compare, "broad phases to run in turn: a,b,... or all")
      .oneOf(comparable)
      .list()
      .excludes(one);
  line.addFinder(settings.options);
  line.addHierarchy(settings.options);
  line.add("--steps", settings.steps, "steps of 1/60 s").range(1, 1000000).showDefault();
  const Option objects = line.add("--objects", settings.objects,
                                  "number of objects without the ground; default: the scene's")
                             .range(1, 10000000);
  line.add("--seed", settings.seed, "seed of all random numbers").showDefault();
  line.addFlag("--awake", settings.isKeptAwake, "nothing falls asleep");
  line.addFlag("--bullet-threads", settings.onBulletsThreads,
               "use a btDiscreteDynamicsWorldMt; one thread if Bullet was built without threads");
  const Option csv =
      line.add("--csv", settings.csv, "write a row per step and broad phase to this file")
          .notEmpty();
  const Option record =
      line.add("--record", settings.record,
               "write the boxes of each step (with the first broad phase) to this .aabb file")
          .notEmpty();
  line.add("--report", settings.report, "write a page with tables and charts to this .html file")
      .notEmpty();
  const Option picture = line.add("--picture", settings.picture,
                                  "draw the boxes after the last step to this .svg file")
                             .notEmpty();
  line.add("--sizes", settings.sizes, "run with n objects for each of n,n,...")
      .range(1, 10000000)
      .list()
      .excludes(objects)
      .excludes(csv)
      .excludes(record)
      .excludes(picture);
  line.addFlag("--summary", settings.summary,
               "print a line of figures for programs, for each broad phase");
  line.addFlag("--list", settings.list, "list the scenes and the broad phases");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Runs a scene of rigid bodies and times the parts of its steps.",
                   "rigid_bodies");
  addOptions(line, settings);
  return runProgram(line, argc, argv, [&] { return run(settings, quoted(argc, argv)); });
}
