// random_walk: writes recorded boxes that move at random (walk.h), for replay.
#include <cstdio>

#include "command_line.h"
#include "recorded_boxes.h"
#include "walk.h"

namespace {

struct Settings {
  std::uint32_t objects = 0;
  std::uint32_t frames = 0;
  std::uint32_t seed = 1;
  std::string file;
};

int write(const Settings& settings) {
  Walk walk(settings.objects, settings.seed);
  BoxWriter writer(settings.file, settings.frames);
  for (std::uint32_t frame = 0; frame < settings.frames; ++frame) {
    writer.write(walk.boxes());
    walk.step();
  }
  std::printf("%s: %u boxes, %u frames\n", settings.file.c_str(), settings.objects,
              settings.frames);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Writes recorded boxes that move at random.", "random_walk");
  app.add_option("OBJECTS", settings.objects)->required()->check(CLI::Range(0, 1 << 28));
  app.add_option("FRAMES", settings.frames)->required()->check(CLI::Range(1, 1 << 20));
  app.add_option("FILE", settings.file, ".aabb")->required();
  app.add_option("--seed", settings.seed)->capture_default_str();
  return runProgram(app, argc, argv, [&settings] { return write(settings); });
}
