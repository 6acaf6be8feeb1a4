// SPDX-License-Identifier: Zlib
// viewer: shows a scene, its broad phase and the pairs, in a window or as pictures. This file reads
// the command line; window.h and script.h do the rest.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "script.h"
#include "support/command_line.h"
#include "support/output_files.h"
#include "window.h"

namespace {

struct Settings {
  SessionOptions session;
  Script script;
  std::vector<std::string> overlays;
  std::vector<double> camera;
  std::vector<double> pick;
  std::vector<int> size;
  int treeLevel = OverlaySwitches().treeLevel;
  std::string swaps;
};

void apply(const Settings& settings, View& view) {
  for (const OverlayRow& row : overlayRows())
    for (const std::string& name : settings.overlays)
      if (name == row.name) view.switches.*row.isOn = true;
  view.switches.treeLevel = settings.treeLevel;
  const auto given = [&](std::size_t i) { return btScalar(settings.camera[i]); };
  if (settings.camera.size() >= 3) {
    view.camera.yaw = given(0);
    view.camera.pitch = given(1);
    view.camera.distance = given(2);
  }
  if (settings.camera.size() == 6) view.camera.target.setValue(given(3), given(4), given(5));
}

void readSwaps(Settings& settings) {
  Script& script = settings.script;
  if (settings.swaps.empty()) return;
  try {
    script.swaps = parseSwaps(settings.swaps);
  } catch (const std::invalid_argument& wrong) {
    throw UsageError(wrong.what());
  }
  std::set<int> steps;
  for (const Swap& swap : script.swaps) {
    if (swap.step >= script.steps)
      throw UsageError(fmt::format("--swap {}:{}: there are only {} steps", swap.step,
                                   swap.broadphase, script.steps));
    if (!steps.insert(swap.step).second)
      throw UsageError(fmt::format("--swap: there are two swaps at step {}", swap.step));
  }
}

/// Whether all values are between -most and most. False if one is NaN.
bool areWithin(const std::vector<double>& values, double most) {
  return std::all_of(values.begin(), values.end(),
                     [most](double value) { return std::abs(value) <= most; });
}

void checkCamera(const std::vector<double>& camera) {
  if (camera.empty()) return;
  if (camera.size() != 3 && camera.size() != 6)
    throw UsageError(fmt::format("--camera takes 3 or 6 numbers, not {}", camera.size()));
  if (!areWithin(camera, 1e6))
    throw UsageError("--camera: all numbers must be from -1000000 to 1000000");
  if (camera[2] < 0.001)
    throw UsageError(
        fmt::format("--camera: the distance is {}, but must be 0.001 or more", camera[2]));
}

void checkOutputs(const Script& script) {
  if (!script.screenshot.empty() && !script.screenshot.ends_with(".png"))
    throw UsageError("--screenshot " + script.screenshot + ": the name must end in .png");
  requireWritable({{"--screenshot", script.screenshot}});
  if (script.video.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(script.video, error);
  if (error) throw FileError("--video " + script.video + ": " + error.message());
  requireWritable({{"--video", pictureOf(script, 0)}});
}

int run(Settings& settings) {
  Script& script = settings.script;
  readSwaps(settings);
  bool usesFinder = settings.session.broadphase == "gpu-lbvh";
  for (const Swap& swap : script.swaps) usesFinder |= swap.broadphase == "gpu-lbvh";
  requireBackend(settings.session.finder, usesFinder);
  checkCamera(settings.camera);
  const bool hasWindow = script.screenshot.empty() && script.video.empty() && !script.verifies;
  if (hasWindow && !script.swaps.empty())
    throw UsageError("--swap needs --screenshot, --video or --verify");
  if (!settings.pick.empty() && script.screenshot.empty())
    throw UsageError("--pick needs --screenshot");
  if (!areWithin(settings.pick, 1)) throw UsageError("--pick: numbers from -1 to 1");
  checkOutputs(script);
  if (settings.size.size() == 2) {
    script.width = settings.size[0];
    script.height = settings.size[1];
  }
  script.picks = settings.pick.size() == 2;
  if (script.picks) {
    script.pickX = btScalar(settings.pick[0]);
    script.pickY = btScalar(settings.pick[1]);
  }
  View view(settings.session);
  apply(settings, view);
  if (hasWindow) {
    runWindow(view, {script.width, script.height, script.hidesUi});
    return 0;
  }
  return runScript(script, view) ? 0 : 1;
}

void addOptions(CommandLine& line, Settings& settings) {
  std::vector<std::string> overlayNames;
  for (const OverlayRow& row : overlayRows()) overlayNames.emplace_back(row.name);
  SessionOptions& session = settings.session;
  Script& script = settings.script;
  const Option scene =
      line.add("--scene", session.scene, "what to simulate").oneOf(sceneNames()).showDefault();
  const Option objects =
      line.add("--objects", session.objects, "number of moving bodies; default: the scene's")
          .range(1, 1000000);
  const Option seed = line.add("--seed", session.seed, "seed of all random numbers").showDefault();
  line.add("--recording", session.recording,
           "show the boxes of this .aabb file instead of a scene, one frame per step")
      .notEmpty()
      .excludes(scene)
      .excludes(objects)
      .excludes(seed);
  line.add("--broadphase", session.broadphase, "the broad phase that finds the pairs")
      .oneOf(broadphaseNames())
      .showDefault();
  line.addFinder(session.finder);
  line.addHierarchy(session.finder);
  line.add("--overlay", settings.overlays, "overlays to draw over the scene: a,b,...")
      .oneOf(overlayNames)
      .list();
  line.add("--tree-level", settings.treeLevel, "level that the overlay tree shows; 0 is the root")
      .range(0, kMaxTreeLevel)
      .showDefault();
  line.add("--camera", settings.camera,
           "YAW,PITCH,DISTANCE[,X,Y,Z]: degrees, degrees, metres, and the point to look at")
      .list();
  line.add("--size", settings.size, "WIDTH,HEIGHT in pixels; default 1280,720")
      .list()
      .count(2)
      .range(64, 8192);
  line.addFlag("--hide-ui", script.hidesUi, "show only the scene, without panel and graphs");

  const char* group = "Without a window";
  line.add("--screenshot", script.screenshot, "write a .png of the last step, then exit")
      .notEmpty()
      .group(group);
  line.add("--video", script.video, "write a .png of each step to this folder, then exit")
      .notEmpty()
      .group(group);
  line.add("--steps", script.steps, "number of steps to run")
      .range(0, 1000000)
      .showDefault()
      .group(group);
  line.add("--pick", settings.pick, "X,Y: pick the object there; from -1,-1 (lower left) to 1,1")
      .list()
      .count(2)
      .group(group);
  line.add("--swap", settings.swaps, "STEP:BROADPHASE,...: change the broad phase at these steps")
      .notEmpty()
      .group(group);
  line.addFlag("--verify", script.verifies,
               "compare objects and pairs with brute force at each swap and at the end; the exit "
               "status is 1 if they differ")
      .group(group);
  line.footer(std::string("In the window:\n")
                  .append(kKeys)
                  .append("\n\nA film from --video DIR:\n"
                          "  ffmpeg -framerate 60 -i DIR/%05d.png -pix_fmt yuv420p film.mp4"));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Shows a scene of rigid bodies, its broad phase and the pairs it finds.",
                   "viewer");
  addOptions(line, settings);
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
