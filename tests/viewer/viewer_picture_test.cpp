// SPDX-License-Identifier: Zlib
// Tests the viewer's pictures, which are drawn without a display. They must not be blank, and each
// overlay must draw its colour.
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "graph.h"
#include "script.h"

namespace {

constexpr int kWidth = 480, kHeight = 320;

/// The pixels of a .png file, as red, green and blue.
struct Picture {
  explicit Picture(const std::string& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_file(&image, path.c_str()) == 0) return;
    image.format = PNG_FORMAT_RGB;
    width = int(image.width);
    height = int(image.height);
    bytes.resize(PNG_IMAGE_SIZE(image));
    png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr);
  }

  /// Number of pixels whose colour is close to `colour`, from column `left` and row `top` on.
  int count(Colour colour, int left = 0, int top = 0) const {
    int found = 0;
    for (int y = top; y < height; ++y) {
      for (int x = left; x < width; ++x) {
        const std::uint8_t* pixel = &bytes[std::size_t(3 * (y * width + x))];
        const int far =
            std::max({std::abs(pixel[0] - colour.red), std::abs(pixel[1] - colour.green),
                      std::abs(pixel[2] - colour.blue)});
        if (far < 48) ++found;
      }
    }
    return found;
  }

  std::size_t colours() const {
    std::set<int> seen;
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3)
      seen.insert(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    return seen.size();
  }

  int width = 0, height = 0;
  std::vector<std::uint8_t> bytes;
};

View makeView() {
  SessionOptions options;
  options.scene = "pile";
  options.objects = 60;
  options.finder.threads = 1;
  return View(options);
}

Script makeScript(const char* name) {
  Script script;
  script.steps = 0;
  script.width = kWidth;
  script.height = kHeight;
  script.hidesUi = true;
  script.screenshot = testing::TempDir().append(name).append(".png");
  return script;
}

Picture take(View& view, const Script& script) {
  EXPECT_TRUE(runScript(script, view));
  return Picture(script.screenshot);
}

TEST(ViewerPicture, ShowsTheSceneAndEachOverlay) {
  View view = makeView();
  for (int i = 0; i < 45; ++i) view.step();
  const Script script = makeScript("viewer_scene");
  const Picture plain = take(view, script);
  ASSERT_EQ(plain.width, kWidth);
  ASSERT_EQ(plain.height, kHeight);
  EXPECT_GT(plain.colours(), 500u) << "not blank";
  EXPECT_GT(plain.count(colours::active), 500) << "the bodies";

  const struct {
    bool OverlaySwitches::*isOn;
    std::vector<Colour> colours;
  } rows[] = {
      {&OverlaySwitches::boxes, {colours::box}},
      {&OverlaySwitches::tree, {colours::treeNodes[0], colours::treeNodes[1]}},
      {&OverlaySwitches::pairs, {colours::touchingPair, colours::nearPair}},
      {&OverlaySwitches::changes, {colours::addedPair}},
  };
  for (const auto& row : rows) {
    view.switches = {};
    view.switches.treeLevel = 1;
    view.switches.*row.isOn = true;
    const Picture picture = take(view, script);
    for (const Colour colour : row.colours)
      EXPECT_GT(picture.count(colour), plain.count(colour) + 40)
          << int(colour.red) << ' ' << int(colour.green) << ' ' << int(colour.blue);
  }
  view.switches = {};
  EXPECT_EQ(take(view, script).bytes, plain.bytes) << "the same picture again";

  Script picks = script;
  picks.picks = true;
  picks.pickY = btScalar(-0.05);
  const Picture picked = take(view, picks);
  EXPECT_NE(view.picked(), nullptr);
  EXPECT_GT(picked.count(colours::picked), plain.count(colours::picked) + 40);
}

TEST(ViewerPicture, HasAPanelAndGraphsWithoutAWindow) {
  View view = makeView();
  Script script = makeScript("viewer_ui");
  script.width = 1280;
  script.height = 720;
  script.hidesUi = false;
  script.steps = 45;
  const Picture first = take(view, script);
  script.steps = 1;
  const Picture second = take(view, script);
  ASSERT_EQ(first.bytes.size(), second.bytes.size());
  const auto differences = [&](int fromX, int toX, int fromY, int toY) {
    int count = 0;
    for (int y = fromY; y < toY; ++y)
      for (int x = fromX; x < toX; ++x)
        for (int part = 0; part < 3; ++part) {
          const auto i = std::size_t(3 * (y * 1280 + x) + part);
          if (first.bytes[i] != second.bytes[i]) ++count;
        }
    return count;
  };
  EXPECT_GT(differences(0, 290, 0, 720), 20) << "the panel shows the number of steps";
  EXPECT_GT(differences(300, 1280, 530, 720), 100) << "the graphs move on";
  const Colour text{214, 218, 226};
  EXPECT_GT(first.count(text), 1000) << "text";
  // Leaves out the legend, which also has the series' colour.
  EXPECT_GT(first.count(pairSeries().front().colour, 960, 600), 60) << "the curve of pairs";
}

TEST(ViewerPicture, AVideoHasOnePicturePerStep) {
  View view = makeView();
  Script script = makeScript("unused");
  script.screenshot.clear();
  script.video = testing::TempDir().append("viewer_video");
  script.steps = 3;
  std::filesystem::remove_all(script.video);
  std::filesystem::create_directories(script.video);
  EXPECT_TRUE(runScript(script, view));
  EXPECT_EQ(Picture(script.video + "/00000.png").width, kWidth);
  EXPECT_EQ(Picture(script.video + "/00002.png").width, kWidth);
  EXPECT_FALSE(std::filesystem::exists(script.video + "/00003.png"));
}

}  // namespace
