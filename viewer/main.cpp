// SPDX-License-Identifier: Zlib
// viewer: shows a scene, its broad phase and what that finds, in a window or as pictures.
// Reads the command line; what the viewer does is in window.h and script.h.
#include <fmt/format.h>

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
      throw UsageError(fmt::format("--swap: two of them at step {}", swap.step));
  }
}

/// NaN is in no range.
bool areWithin(const std::vector<double>& values, double most) {
  return std::all_of(values.begin(), values.end(),
                     [most](double value) { return std::abs(value) <= most; });
}

void checkCamera(const std::vector<double>& camera) {
  if (camera.empty()) return;
  if (camera.size() != 3 && camera.size() != 6)
    throw UsageError("--camera takes three or six numbers");
  if (!areWithin(camera, 1e6)) throw UsageError("--camera: numbers from -1000000 to 1000000");
  if (camera[2] < 0.001) throw UsageError("--camera: the distance must be 0.001 or more");
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
    throw UsageError("--swap is for --screenshot, --video and --verify");
  if (!settings.pick.empty() && script.screenshot.empty())
    throw UsageError("--pick is for --screenshot");
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

void addOptions(CLI::App& app, Settings& settings) {
  std::vector<std::string> overlayNames;
  for (const OverlayRow& row : overlayRows()) overlayNames.emplace_back(row.name);
  SessionOptions& session = settings.session;
  Script& script = settings.script;
  auto* scene = app.add_option("--scene", session.scene, "what to simulate")
                    ->check(CLI::IsMember(sceneNames()))
                    ->capture_default_str();
  auto* objects =
      app.add_option("--objects", session.objects, "moving bodies; default: the scene's")
          ->check(CLI::Range(1, 1000000));
  auto* seed =
      app.add_option("--seed", session.seed, "of all random numbers")->capture_default_str();
  app.add_option("--recording", session.recording,
                 "show the boxes of this .aabb file, a frame a step, in place of a scene")
      ->check(notEmpty())
      ->excludes(scene)
      ->excludes(objects)
      ->excludes(seed);
  app.add_option("--broadphase", session.broadphase, "what finds the pairs")
      ->check(CLI::IsMember(broadphaseNames()))
      ->capture_default_str();
  addFinderOptions(app, session.finder);
  app.add_option("--overlay", settings.overlays, "what to draw over the scene: a,b,...")
      ->check(CLI::IsMember(overlayNames))
      ->delimiter(',');
  app.add_option("--tree-level", settings.treeLevel, "of the overlay tree; 0 is the root")
      ->check(CLI::Range(0, kMaxTreeLevel))
      ->capture_default_str();
  app.add_option("--camera", settings.camera,
                 "YAW,PITCH,DISTANCE[,X,Y,Z]: degrees, degrees, metres, where to look")
      ->delimiter(',');
  app.add_option("--size", settings.size, "WIDTH,HEIGHT in pixels; default 1280,720")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(64, 8192));
  app.add_flag("--hide-ui", script.hidesUi, "only the scene, no panel and no graphs");

  const char* group = "Without a window";
  app.add_option("--screenshot", script.screenshot, "write a .png of the last step, and end")
      ->check(notEmpty())
      ->group(group);
  app.add_option("--video", script.video, "write a .png a step to this folder, and end")
      ->check(notEmpty())
      ->group(group);
  app.add_option("--steps", script.steps, "how many steps to run")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--pick", settings.pick, "X,Y: pick what is there; from -1,-1 to 1,1")
      ->delimiter(',')
      ->expected(2)
      ->group(group);
  app.add_option("--swap", settings.swaps, "STEP:BROADPHASE,...: other broad phases on the way")
      ->check(notEmpty())
      ->group(group);
  app.add_flag("--verify", script.verifies,
               "compare objects and pairs with brute force at each swap and at the end; exit "
               "status 1 if they differ")
      ->group(group);
  app.footer(std::string("In the window:\n")
                 .append(kKeys)
                 .append("\n\nA film from --video DIR:\n"
                         "  ffmpeg -framerate 60 -i DIR/%05d.png -pix_fmt yuv420p film.mp4"));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Shows a scene of rigid bodies, its broad phase and what that finds.", "viewer");
  addOptions(app, settings);
  return runProgram(app, argc, argv, [&settings] { return run(settings); });
}
