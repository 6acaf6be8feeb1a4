// SPDX-License-Identifier: Zlib
// make_scene: writes files of boxes for replay. The scenes are a random walk (walk.h), and several
// scenes that are hard for a broad phase. The density of a scene does not depend on the number of
// boxes.
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "support/command_line.h"
#include "support/output_files.h"
#include "support/random.h"
#include "support/recorded_boxes.h"
#include "support/system.h"
#include "walk.h"

namespace {

struct Settings {
  std::string kind;
  std::uint32_t objects = 0;
  std::uint32_t frames = 0;
  std::uint32_t seed = 1;
  double moving = 1;
  float step = Walk::kStep;
  bool ground = false;
  std::string file;
};

/// A plane's AABB in Bullet.
constexpr lbvh::Aabb kGround{{-1e18f, -1e18f, -1e18f}, {1e18f, 1e18f, 1e18f}};

struct Body {
  float centre[3];
  float half[3];
  float speed[3] = {0, 0, 0};  ///< units per frame
  float floor = -1e9f;         ///< height at which its centre comes to rest

  lbvh::Aabb box() const {
    lbvh::Aabb box;
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = centre[axis] - half[axis];
      box.max[axis] = centre[axis] + half[axis];
    }
    return box;
  }
};

using MakeBody = std::function<Body(std::uint32_t i)>;

Body cube(float x, float y, float z, float half) { return {{x, y, z}, {half, half, half}}; }

void moveAtRandom(Body& body, Random& random, float most) {
  for (float& speed : body.speed) speed = between(random, -most, most);
}

/// Dense clusters of boxes, and one large thin box for every 512 boxes.
MakeBody clusters(std::uint32_t n, Random& random) {
  const float side = 8 * std::cbrt(static_cast<float>(n));
  const std::uint32_t balls = n / 512 + 1;
  std::vector<Body> centres;
  for (std::uint32_t i = 0; i < balls; ++i) {
    const float x = between(random, 0, side), y = between(random, 0, side);
    centres.push_back(cube(x, y, between(random, 0, side), 0));
  }
  return [=, &random](std::uint32_t i) {
    if (i % 512 == 0) {
      const float y = between(random, 0, side);
      Body plane = cube(between(random, 0, side), y, 0, 10);
      plane.centre[2] = between(random, 0, side);
      plane.half[random.below(3)] = 0.1f;
      return plane;
    }
    Body body = cube(0, 0, 0, between(random, 0.3f, 0.7f));
    const Body& ball = centres[static_cast<std::size_t>(random.below(static_cast<int>(balls)))];
    for (int axis = 0; axis < 3; ++axis) {
      float sum = 0;  // the sum of four numbers is close enough to a normal distribution
      for (int k = 0; k < 4; ++k) sum += between(random, -1.73f, 1.73f);
      body.centre[axis] = ball.centre[axis] + sum;
    }
    moveAtRandom(body, random, 0.05f);
    return body;
  };
}

/// Boxes whose sizes are log-uniform over four decades.
MakeBody sizes(std::uint32_t n, Random& random) {
  const float side = 1.33f * std::cbrt(static_cast<float>(n));
  return [=, &random](std::uint32_t) {
    const float x = between(random, 0, side), y = between(random, 0, side);
    Body body = cube(x, y, between(random, 0, side), 0);
    // Computed in double, so that libraries that round pow differently give the same float.
    const auto size = static_cast<float>(std::pow(10.0, double{between(random, -3, 1)}));
    for (float& half : body.half) half = size * between(random, 0.5f, 1) / 2;
    moveAtRandom(body, random, 0.05f);
    return body;
  };
}

/// Groups of 64 boxes that share a centre. Their indices are scattered.
MakeBody groups(std::uint32_t n, Random& random) {
  const std::uint32_t count = n / 64 + 1;
  const float side = 7.4f * std::cbrt(static_cast<float>(count));
  std::vector<Body> centres;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float x = between(random, 0, side), y = between(random, 0, side);
    centres.push_back(cube(x, y, between(random, 0, side), 0));
    moveAtRandom(centres.back(), random, 0.05f);
  }
  return [=, &random](std::uint32_t i) {
    Body body = centres[i % count];
    for (float& half : body.half) half = between(random, 0.2f, 2);
    return body;
  };
}

/// A wide, low scene in which one box in ten moves. The others never move.
MakeBody city(std::uint32_t n, Random& random) {
  const float side = 1.6f * std::sqrt(static_cast<float>(n));
  return [=, &random](std::uint32_t i) {
    const float x = between(random, 0, side), y = between(random, 0, side);
    const bool moves = i % 10 == 0;
    const float half = between(random, 0.3f, 0.8f);
    Body body = cube(x, y, between(random, 0, moves ? 3.0f : 4.0f), half);
    if (moves) moveAtRandom(body, random, 0.3f);
    return body;
  };
}

/// Boxes fall from a tall column onto a heap.
MakeBody fall(std::uint32_t n, Random& random) {
  const float side = std::sqrt(static_cast<float>(n) / 45);
  return [=, &random](std::uint32_t i) {
    const float x = between(random, 0, side), y = between(random, 0, side);
    const float floor = 20 * static_cast<float>(i) / static_cast<float>(n);
    Body body = cube(x, y, 4 * floor, between(random, 0.3f, 0.7f));
    body.floor = floor;
    body.speed[2] = -0.1f;
    return body;
  };
}

const std::map<std::string, MakeBody (*)(std::uint32_t, Random&)> kKinds{
    {"clusters", clusters}, {"sizes", sizes}, {"groups", groups}, {"city", city}, {"fall", fall}};

/// Bodies that fly straight ahead, or fall to their floor.
class Flight {
 public:
  explicit Flight(const Settings& settings) : boxes_(settings.objects) {
    Random random(settings.seed);
    const MakeBody make = kKinds.at(settings.kind)(settings.objects, random);
    for (std::uint32_t i = 0; i < settings.objects; ++i) bodies_.push_back(make(i));
    measure();
  }

  const std::vector<lbvh::Aabb>& boxes() const { return boxes_; }

  void step() {
    for (Body& body : bodies_) move(body);
    measure();
  }

 private:
  static void move(Body& body) {
    for (int axis = 0; axis < 3; ++axis) body.centre[axis] += body.speed[axis];
    body.speed[2] -= body.floor > -1e8f ? 0.005f : 0.0f;
    if (body.centre[2] < body.floor) {
      body.centre[2] = body.floor;
      body.speed[2] = 0;
    }
  }

  void measure() {
    for (std::size_t i = 0; i < bodies_.size(); ++i) boxes_[i] = bodies_[i].box();
  }

  std::vector<Body> bodies_;
  std::vector<lbvh::Aabb> boxes_;
};

template <class Scene>
int write(Scene scene, const Settings& settings) {
  BoxWriter writer(settings.file, settings.frames);
  std::uint32_t frames = 0;
  while (frames < settings.frames && interruption() == 0) {
    std::vector<lbvh::Aabb> boxes = scene.boxes();
    if (settings.ground) boxes[0] = kGround;
    writer.write(boxes);
    scene.step();
    ++frames;
  }
  std::printf("%s: %u boxes, %u frames\n", settings.file.c_str(), settings.objects, frames);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Writes a file of moving boxes for replay.", "make_scene");
  std::vector<std::string> kinds{"walk"};
  for (const auto& [name, make] : kKinds) kinds.push_back(name);
  line.add("KIND", settings.kind, "placement and motion of the boxes").required().oneOf(kinds);
  line.add("OBJECTS", settings.objects, "number of boxes").required().range(1, 1 << 28);
  line.add("FRAMES", settings.frames, "number of frames").required().range(1, 1 << 20);
  line.add("FILE", settings.file, "output file, .aabb").required().notEmpty();
  line.add("--seed", settings.seed, "seed of all random numbers").showDefault();
  line.add("--moving", settings.moving, "share of walk's boxes that move")
      .range(0.0, 1.0)
      .showDefault();
  line.add("--step", settings.step,
           "standard deviation of a move of walk's boxes per frame and axis; sides are about 1")
      .range(0.0, 1.0)
      .showDefault();
  line.addFlag("--ground", settings.ground,
               "the first box is an infinite plane, which overlaps all others");
  return runProgram(line, argc, argv, [&settings] {
    requireWritable({{"FILE", settings.file}});
    catchInterruptions();
    if (settings.kind == "walk")
      return write(Walk(settings.objects, settings.seed, settings.moving, settings.step), settings);
    return write(Flight(settings), settings);
  });
}
