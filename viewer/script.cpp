// SPDX-License-Identifier: Zlib
#include "script.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "canvas.h"
#include "headless.h"
#include "renderer.h"
#include "support/progress_bar.h"
#include "ui.h"
#include "verify.h"

namespace {

/// All that is needed to draw pictures without a window. The members are in the order of their
/// construction.
struct Studio {
  explicit Studio(const Script& script) : canvas(script.width, script.height) {
    ui.isHidden = script.hidesUi;
  }

  Area area() const { return ui.sceneArea(canvas.width(), canvas.height()); }

  void shoot(View& view, const std::string& file) {
    // Draws twice, because ImGui lays out a new window only when it is first drawn.
    for (int i = 0; i < 2; ++i) {
      canvas.bind();
      renderer.draw(view.draw(), view.camera, area());
      ui.draw(view, canvas.width(), canvas.height());
    }
    canvas.savePng(file);
  }

  HeadlessContext context;
  Canvas canvas;
  Renderer renderer;
  Ui ui;
};

/// Compares the pairs with brute force, and prints the result.
bool check(View& view, int objects, const char* when) {
  Session& session = view.session();
  const std::string& name = session.options().broadphase;
  const std::string wrong = verifyWorld(session.world(), objects, promiseOf(name));
  fmt::print("step {:>4} {:<10} {:<18} {} objects, {} pairs: {}\n", session.steps(), name, when,
             session.world().objects(), session.world().pairs(),
             !wrong.empty()                          ? wrong
             : promiseOf(name) == PairPromise::exact ? "equal to brute force"
                                                     : "all pairs of brute force are among them");
  return wrong.empty();
}

void step(View& view) {
  view.step();
  if (!view.error().empty()) throw std::runtime_error(view.error());
}

}  // namespace

std::vector<Swap> parseSwaps(const std::string& text) {
  std::vector<Swap> swaps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t colon = text.find(':', at), end = std::min(text.find(',', at), text.size());
    const std::string digits = colon < end ? text.substr(at, colon - at) : "";
    const std::string name = colon < end ? text.substr(colon + 1, end - colon - 1) : "";
    const auto& names = broadphaseNames();
    if (digits.empty() || digits.size() > 8 ||
        digits.find_first_not_of("0123456789") != std::string::npos ||
        std::find(names.begin(), names.end(), name) == names.end())
      throw std::invalid_argument("a swap is STEP:BROADPHASE, not '" + text.substr(at, end - at) +
                                  "'");
    swaps.push_back({std::stoi(digits), name});
    at = end + 1;
  }
  return swaps;
}

std::string pictureOf(const Script& script, int step) {
  return fmt::format("{}/{:05}.png", script.video, step);
}

bool runScript(const Script& script, View& view) {
  std::unique_ptr<Studio> studio;
  if (!script.screenshot.empty() || !script.video.empty())
    studio = std::make_unique<Studio>(script);
  bool isGood = true;
  ProgressBar bar(script.steps);
  for (int i = 0; i < script.steps; ++i) {
    bar.show(i);
    bool isSwapped = false;
    for (const Swap& swap : script.swaps) {
      if (swap.step != i) continue;
      const int objects = view.session().world().objects();
      if (script.verifies) isGood = check(view, objects, "before a swap") && isGood;
      view.swap(swap.broadphase, view.session().options().finder);
      if (script.verifies) isGood = check(view, objects, "right after a swap") && isGood;
      isSwapped = true;
    }
    step(view);
    if (isSwapped && script.verifies)
      isGood = check(view, view.session().world().objects(), "one step later") && isGood;
    if (!script.video.empty()) studio->shoot(view, pictureOf(script, i));
  }
  if (script.verifies)
    isGood = check(view, view.session().world().objects(), "at the end") && isGood;
  if (!script.screenshot.empty()) {
    if (script.picks) {
      view.draw();  // determines which objects are drawn as outlines; these cannot be picked
      view.pickAt(script.pickX, script.pickY, studio->area().aspect());
    }
    studio->shoot(view, script.screenshot);
    fmt::print("step {}: picture written to {}\n", script.steps, script.screenshot);
  }
  if (!script.video.empty()) fmt::print("{} pictures written to {}\n", script.steps, script.video);
  return isGood;
}
