// random_walk: writes recorded boxes that move at random, for replay. Unit boxes in a cube, about
// eleven neighbours each whatever their number; each centre moves up to 0.05 a frame and axis.
#include <cmath>
#include <cstdio>

#include "command_line.h"
#include "random.h"
#include "recorded_boxes.h"

namespace {

struct Settings {
  std::uint32_t objects = 0;
  std::uint32_t frames = 0;
  std::uint32_t seed = 1;
  std::string file;
};

int write(const Settings& settings) {
  Random random(settings.seed);
  const float side = std::cbrt(static_cast<float>(settings.objects) * 8 / 11);
  std::vector<lbvh::Aabb> boxes(settings.objects);
  for (lbvh::Aabb& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = side * static_cast<float>(random.unit());
      box.max[axis] = box.min[axis] + 1;
    }
  BoxWriter writer(settings.file, settings.frames);
  for (std::uint32_t frame = 0; frame < settings.frames; ++frame) {
    writer.write(boxes);
    for (lbvh::Aabb& box : boxes)
      for (int axis = 0; axis < 3; ++axis) {
        const auto step = static_cast<float>(random.between(btScalar(-0.05), btScalar(0.05)));
        box.min[axis] += step;
        box.max[axis] += step;
      }
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
