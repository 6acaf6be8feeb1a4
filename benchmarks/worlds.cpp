// SPDX-License-Identifier: Zlib
// worlds: times searches of a DevicePairFinder in many worlds at the same place, and in one
// spread-out scene with the same number of boxes and about as many pairs. Prints hashes of the
// pairs, which must be equal on all backends.
#include "worlds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "broadphase/device_pair_finder.h"
#include "support/command_line.h"
#include "support/random.h"
#include "support/timing.h"
#include "walk.h"

namespace {

using lbvh::Aabb;

struct Settings {
  int worlds = 4096;
  int boxes = 64;
  int most = 0;
  double shared = 0;
  int walk = 0;
  std::string layout = "sorted";
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
          options.memory = lbvh::MemorySpace::host;
          options.threads = threads;
          return options;
        }()) {}
  std::uint64_t step() override {
    lbvh::DeviceScene scene = lbvh::DeviceScene::of({boxes_.boxes.data(), boxes_.boxes.size()});
    scene.worlds = boxes_.worlds.empty() ? nullptr : boxes_.worlds.data();
    scene.worldCount = boxes_.worldCount;
    lists_ = finder_.find(scene, boxes_.request, nullptr);
    return lists_.report->pairs;
  }
  PairHash found() override {
    PairHash hash;
    for (std::size_t i = 0; i < std::min<std::size_t>(lists_.report->pairs, lists_.pairs.size());
         ++i)
      hash.add(lists_.pairs.data()[i]);
    return hash;
  }

 private:
  const WorldBoxes& boxes_;
  lbvh::DevicePairFinder finder_;
  lbvh::DeviceLists lists_;  ///< lists of the last step
};

Aabb boxIn(float side, Random& random) {
  Aabb box;
  for (int axis = 0; axis < 3; ++axis) {
    box.min[axis] = side * static_cast<float>(random.unit());
    box.max[axis] = box.min[axis] + 1;
  }
  return box;
}

/// The side of a cube in which this many boxes have about three pairs per box.
float sideOf(double boxes) { return static_cast<float>(std::cbrt(1.2 * boxes)); }

/// The number of boxes of a world. It is (most + 1)^(u^3) - 1 for a uniform u, so small worlds are
/// more frequent. If `most` is 0, all worlds have `boxes` boxes.
int sizeOf(const Settings& settings, Random& random) {
  if (settings.most == 0) return settings.boxes;
  const double u = static_cast<double>(random.unit());
  return static_cast<int>(std::pow(settings.most + 1, u * u * u)) - 1;
}

/// Makes worlds in cubes that have a corner in common. Boxes that are in all worlds lie in a cube
/// as large as that of a world with 1,000 boxes.
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

WorldBoxes oneWorld(std::size_t boxes, float side) {
  Random random(2);
  WorldBoxes scene;
  for (std::size_t i = 0; i < boxes; ++i) scene.boxes.push_back(boxIn(side, random));
  return scene;
}

/// Frame 15 of make_scene's walk; the first frame is 0.
WorldBoxes walkOf(int boxes) {
  Walk walk(static_cast<std::uint32_t>(boxes), 1);
  for (int frame = 0; frame < 15; ++frame) walk.step();
  WorldBoxes scene;
  scene.boxes = walk.boxes();
  return scene;
}

/// Makes one world with the same number of boxes as `worlds`, and the same number of pairs to about
/// 1 %. Adjusts its volume, to which the number of pairs is inversely proportional.
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

  /// The first three rounds are not timed, because memory grows in them.
  void step(int round) {
    if (run == nullptr) return;
    const Stopwatch watch;
    pairs = run->step();
    if (round >= 3) ms.push_back(watch.milliseconds());
  }
  std::uint64_t hash() const { return run != nullptr ? run->found().hash() : 0; }
};

struct Scenes {
  std::string name;
  WorldBoxes worlds, one;
};

Scenes scenesOf(const Settings& settings) {
  Scenes scenes;
  if (settings.walk > 0) {
    scenes.name = "walk";
    scenes.one = walkOf(settings.walk);
  } else {
    const std::string sizes =
        settings.most > 0 ? fmt::format("0 to {}", settings.most) : std::to_string(settings.boxes);
    scenes.name = fmt::format("{} worlds of {} boxes", settings.worlds, sizes);
    scenes.worlds = manyWorlds(settings);
    scenes.one = oneWorldLike(scenes.worlds);
  }
  if (settings.layout == "unsorted")
    scenes.worlds.request.layout = scenes.one.request.layout = lbvh::PairLayout::unsorted;
  return scenes;
}

int run(const Settings& settings) {
  lbvh::Options options;
  options.backend = settings.backend == "cuda" ? lbvh::Backend::cuda : lbvh::Backend::host;
  requireBackend(options);
  const Scenes scenes = scenesOf(settings);
  Timed many, single;
  if (settings.only != "one" && settings.walk == 0) many.run = runOf(settings, scenes.worlds);
  if (settings.only != "worlds") single.run = runOf(settings, scenes.one);
  for (int round = 0; round < settings.rounds + 3; ++round) {
    many.step(round);
    single.step(round);
  }
  const double ms = median(many.ms), oneMs = median(single.ms);
  fmt::print(
      "scene,boxes,pairs,one_pairs,shared,backend,threads,ms,one_ms,ratio,mean_ms,max_ms,"
      "one_mean_ms,one_max_ms,hash,one_hash\n");
  fmt::print("{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},", scenes.name, scenes.one.boxes.size(),
             many.pairs, single.pairs, settings.shared, settings.backend, settings.threads, ms,
             oneMs, oneMs > 0 ? ms / oneMs : 0);
  fmt::print("{:.3f},{:.3f},{:.3f},{:.3f},{:016x},{:016x}\n", mean(many.ms), percentile(many.ms, 1),
             mean(single.ms), percentile(single.ms, 1), many.hash(), single.hash());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line(
      "Times many worlds at the same place, and one spread-out scene with the same number of "
      "boxes.",
      "worlds");
  line.add("--worlds", settings.worlds, "number of worlds").range(1, 1 << 20).showDefault();
  line.add("--boxes", settings.boxes, "boxes in each world").range(1, 1 << 20).showDefault();
  line.add("--most", settings.most, "instead of --boxes: from 0 to this many boxes per world")
      .range(0, 1 << 24)
      .showDefault();
  line.add("--shared", settings.shared, "number of boxes in all worlds, as a multiple of --worlds")
      .range(0.0, 10.0)
      .showDefault();
  line.add("--walk", settings.walk,
           "no worlds, but one scene: make_scene's walk of this many boxes")
      .range(1, 1 << 24);
  line.add("--layout", settings.layout, "layout of the pairs")
      .oneOf({"sorted", "unsorted"})
      .showDefault();
  line.add("--only", settings.only, "search one of the two scenes, to count its cost")
      .oneOf({"worlds", "one"});
  line.add("--backend", settings.backend, "where to search").oneOf({"host", "cuda"}).showDefault();
  line.add("--threads", settings.threads, "number of host threads").range(1, 1024).showDefault();
  line.add("--rounds", settings.rounds,
           "number of rounds, in each of which both scenes are searched")
      .range(1, 100000)
      .showDefault();
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
