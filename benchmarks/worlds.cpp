// SPDX-License-Identifier: Zlib
// worlds: what many worlds at the same place cost a DevicePairFinder, beside one spread-out scene
// of as many boxes and as many pairs.
#include "worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "broadphase/device_pair_finder.h"
#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"

namespace {

using lbvh::Aabb;

struct Settings {
  int worlds = 4096;
  int boxes = 64;
  int most = 0;
  double shared = 0;
  std::string only;
  std::string backend = "host";
  int threads = 1;
  int rounds = 9;
};

class HostRun final : public WorldsRun {
 public:
  HostRun(const WorldBoxes& scene, int threads)
      : boxes_(scene), finder_([threads] {
          lbvh::DeviceOptions options;
          options.backend = lbvh::Backend::host;
          options.threads = threads;
          return options;
        }()) {}
  std::uint64_t step() override {
    lbvh::DeviceScene scene = lbvh::DeviceScene::of({boxes_.boxes.data(), boxes_.boxes.size()});
    scene.worlds = boxes_.worlds.empty() ? nullptr : boxes_.worlds.data();
    scene.worldCount = boxes_.worldCount;
    return finder_.find(scene, {}, nullptr).report->pairs;
  }

 private:
  const WorldBoxes& boxes_;
  lbvh::DevicePairFinder finder_;
};

/// A unit box in a cube.
Aabb boxIn(float side, Random& random) {
  Aabb box;
  for (int axis = 0; axis < 3; ++axis) {
    box.min[axis] = side * static_cast<float>(random.unit());
    box.max[axis] = box.min[axis] + 1;
  }
  return box;
}

/// As large as it must be for some three pairs a box.
float sideOf(double boxes) { return static_cast<float>(std::cbrt(1.2 * boxes)); }

/// Sizes from 0 to `most` boxes, of which small ones are more frequent: most^(u^3) - 1 for even u.
int sizeOf(const Settings& settings, Random& random) {
  if (settings.most == 0) return settings.boxes;
  const double u = static_cast<double>(random.unit());
  return static_cast<int>(std::pow(settings.most + 1, u * u * u)) - 1;
}

/// All worlds have a corner in common; boxes in all of them lie where a small one does.
WorldBoxes manyWorlds(const Settings& settings) {
  Random random(1);
  WorldBoxes scene;
  scene.worldCount = static_cast<std::uint32_t>(settings.worlds);
  for (std::uint32_t world = 0; world < scene.worldCount; ++world) {
    const int size = sizeOf(settings, random);
    for (int i = 0; i < size; ++i) scene.boxes.push_back(boxIn(sideOf(size), random));
    scene.worlds.resize(scene.boxes.size(), world);
  }
  const int shared = static_cast<int>(settings.shared * settings.worlds);
  for (int i = 0; i < shared; ++i) scene.boxes.push_back(boxIn(sideOf(1000), random));
  scene.worlds.resize(scene.boxes.size(), lbvh::kAllWorlds);
  return scene;
}

/// In one world, at random.
WorldBoxes oneWorld(std::size_t boxes, float side) {
  Random random(2);
  WorldBoxes scene;
  for (std::size_t i = 0; i < boxes; ++i) scene.boxes.push_back(boxIn(side, random));
  return scene;
}

/// As many boxes and, within a hundredth or so, as many pairs: their number falls with the volume.
WorldBoxes oneWorldLike(const WorldBoxes& worlds) {
  const std::size_t n = worlds.boxes.size();
  const auto pairs = static_cast<double>(HostRun(worlds, 2).step());
  float side = sideOf(static_cast<double>(n));
  for (int round = 0; round < 4; ++round) {
    const WorldBoxes one = oneWorld(n, side);
    const auto found = static_cast<double>(HostRun(one, 2).step());
    side *= static_cast<float>(std::cbrt(found / std::max(1.0, pairs)));
  }
  return oneWorld(n, side);
}

std::unique_ptr<WorldsRun> runOf(const Settings& settings, const WorldBoxes& scene) {
#if defined(GPULBVH_CUDA)
  if (settings.backend == "cuda") return runOnCuda(scene);
#endif
  return std::make_unique<HostRun>(scene, settings.threads);
}

struct Timed {
  std::unique_ptr<WorldsRun> run;
  std::vector<double> ms = {};
  std::uint64_t pairs = 0;

  /// The first three are not timed: memory grows.
  void step(int round) {
    if (run == nullptr) return;
    const Stopwatch watch;
    pairs = run->step();
    if (round >= 3) ms.push_back(watch.milliseconds());
  }
};

int run(const Settings& settings) {
  lbvh::Options options;
  options.backend = settings.backend == "cuda" ? lbvh::Backend::cuda : lbvh::Backend::host;
  requireBackend(options);
  const WorldBoxes worlds = manyWorlds(settings), one = oneWorldLike(worlds);
  Timed many, single;
  if (settings.only != "one") many.run = runOf(settings, worlds);
  if (settings.only != "worlds") single.run = runOf(settings, one);
  for (int round = 0; round < settings.rounds + 3; ++round) {
    many.step(round);
    single.step(round);
  }
  fmt::print(
      "worlds,boxes,most,shared,all_boxes,pairs,one_pairs,backend,threads,ms,one_ms,ratio\n");
  const double ms = median(many.ms), oneMs = median(single.ms);
  fmt::print("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f}\n", settings.worlds, settings.boxes,
             settings.most, settings.shared, worlds.boxes.size(), many.pairs, single.pairs,
             settings.backend, settings.threads, ms, oneMs, oneMs > 0 ? ms / oneMs : 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times many worlds at the same place beside one spread-out scene of as many boxes.",
               "worlds");
  app.add_option("--worlds", settings.worlds, "how many")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--boxes", settings.boxes, "in each of them")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--most", settings.most, "sizes from 0 to this instead; small ones are frequent")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app.add_option("--shared", settings.shared, "boxes in all worlds, for each world")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--only", settings.only, "one of the two scenes, to count what it costs")
      ->check(CLI::IsMember({"worlds", "one"}));
  app.add_option("--backend", settings.backend, "where to search")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "on the host")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "the two take turns so often")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  return runProgram(app, argc, argv, [&settings] { return run(settings); });
}
