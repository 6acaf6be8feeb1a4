// rigid_bodies: runs a scene with one broad phase, or with several in turn, and prints where the
// time of a step went. Can record the boxes of each step for replay.
#include <fmt/format.h>

#include <optional>

#include "broadphases.h"
#include "command_line.h"
#include "recorded_boxes.h"
#include "report.h"
#include "scenes.h"

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
  bool list = false;

  std::vector<std::string> broadphases() const {
    return compare.empty() ? std::vector{broadphase} : compare;
  }
};

std::vector<std::string> sceneNames() {
  std::vector<std::string> names;
  for (const Scene& scene : scenes()) names.emplace_back(scene.name);
  return names;
}

int list() {
  for (const Scene& scene : scenes()) {
    fmt::print("{:<11}{:>7} objects  {}\n", scene.name, scene.defaultObjects, scene.stresses);
  }
  fmt::print("broad phases: {}\n", fmt::join(broadphaseNames(), ", "));
  return 0;
}

struct LiveRun {
  std::unique_ptr<World> world;
  Run run;
};

LiveRun start(const Settings& settings, const Scene& scene, const std::string& broadphase) {
  LiveRun live;
  live.run.broadphase = broadphase;
  live.run.objects = settings.objects.value_or(scene.defaultObjects);
  live.world = std::make_unique<World>(
      makeBroadphase(broadphase, setupFor(live.run.objects, settings.options)));
  scene.build(*live.world, {live.run.objects, settings.seed});
  live.run.space = spaceOf(live.world->broadphase());
  const int still = live.world->staticObjects();
  fmt::print("{}: {} moving and {} static objects; {}\n", broadphase, live.world->objects() - still,
             still, live.run.space.details);
  return live;
}

void step(LiveRun& live) {
  live.world->step();
  const std::string error = errorOf(live.world->broadphase());
  if (!error.empty()) throw std::runtime_error(fmt::format("{}: {}", live.run.broadphase, error));
  live.run.steps.push_back(live.world->times());
  live.run.pairs = live.world->pairs();
}

/// The worlds take turns step by step, so that what disturbs the machine disturbs all of them.
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
  }
}

int run(const Settings& settings) {
  if (settings.list) return list();
  const Scene& scene = *findScene(settings.scene.c_str());
  const std::vector<std::string> names = settings.broadphases();
  for (const std::string& name : names) {
    if (name == "gpu-lbvh") requireBackend(settings.options);
  }
  std::optional<CsvFile> csv;
  if (!settings.csv.empty()) csv.emplace(settings.csv);
  std::optional<BoxWriter> recorder;
  if (!settings.record.empty()) {
    recorder.emplace(settings.record, static_cast<std::uint32_t>(settings.steps));
  }

  fmt::print("scene {}, {} steps of 1/60 s, seed {}\n", scene.name, settings.steps, settings.seed);
  std::vector<LiveRun> lives;
  for (const std::string& name : names) lives.push_back(start(settings, scene, name));
  std::fflush(stdout);
  runAll(settings, lives, csv, recorder);

  std::vector<Run> runs;
  for (LiveRun& live : lives) {
    live.run.space = spaceOf(live.world->broadphase());  // it may have changed to the host
    live.run.hash = live.world->hash();
    runs.push_back(live.run);
  }
  printTable(runs);
  for (const Run& one : runs) printSummary(scene.name, one);
  return 0;
}

void addOptions(CLI::App& app, Settings& settings) {
  app.add_option("--scene", settings.scene, "what to simulate; see --list")
      ->check(CLI::IsMember(sceneNames()))
      ->capture_default_str();
  auto* one = app.add_option("--broadphase", settings.broadphase, "what finds the pairs")
                  ->check(CLI::IsMember(broadphaseNames()))
                  ->capture_default_str();
  app.add_option("--compare", settings.compare, "broad phases to run in turn: a,b,...")
      ->check(CLI::IsMember(broadphaseNames()))
      ->delimiter(',')
      ->excludes(one);
  addFinderOptions(app, settings.options);
  app.add_option("--steps", settings.steps, "steps of 1/60 s")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--objects", settings.objects,
                 "how many, without the ground; default: the scene's")
      ->check(CLI::Range(1, 10000000));
  app.add_option("--seed", settings.seed, "of all random numbers")->capture_default_str();
  app.add_option("--csv", settings.csv, "write a row per step and broad phase to this file");
  app.add_option("--record", settings.record,
                 "write the boxes of each step (of the first broad phase) to this .aabb file");
  app.add_flag("--list", settings.list, "list the scenes and the broad phases");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Runs a scene of rigid bodies and times the parts of its steps.", "rigid_bodies");
  addOptions(app, settings);
  return runProgram(app, argc, argv, [&settings] { return run(settings); });
}
