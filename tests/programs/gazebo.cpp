// SPDX-License-Identifier: Zlib
// Runs Debian's Bullet plugin of Gazebo without a window. Boxes fall on a plate and on each other.
// This source does not refer to our broad phase. The plugin frees its bodies before its world, so
// the world reads freed memory.
// Usage:
//   gazebo PLUGIN BOXES        prints the mean height, and on stderr the milliseconds of a step
#include <ignition/physics/ForwardStep.hh>
#include <ignition/physics/FrameSemantics.hh>
#include <ignition/physics/RequestEngine.hh>
#include <ignition/physics/sdf/ConstructCollision.hh>
#include <ignition/physics/sdf/ConstructLink.hh>
#include <ignition/physics/sdf/ConstructModel.hh>
#include <ignition/physics/sdf/ConstructWorld.hh>
#include <ignition/plugin/Loader.hh>
#include <sdf/Collision.hh>
#include <sdf/Link.hh>
#include <sdf/Model.hh>
#include <sdf/Root.hh>
#include <sdf/World.hh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace {

namespace physics = ignition::physics;
using Clock = std::chrono::steady_clock;
using Features =
    physics::FeatureList<physics::ForwardStep, physics::LinkFrameSemantics,
                         physics::sdf::ConstructSdfWorld, physics::sdf::ConstructSdfModel,
                         physics::sdf::ConstructSdfLink, physics::sdf::ConstructSdfCollision>;
using Body = physics::Link3dPtr<Features>;

/// Returns a box. Parses it from XML, because the plugin reads the XML text of a shape.
sdf::Collision boxOf(const std::string& size) {
  sdf::Root root;
  root.LoadSdfString(
      "<sdf version='1.9'><model name='model'><link name='link'>"
      "<collision name='box'><geometry><box><size>" +
      size + "</size></box></geometry></collision></link></model></sdf>");
  return *root.Model()->LinkByIndex(0)->CollisionByIndex(0);
}

Body add(physics::World3d<Features>& world, const sdf::Collision& shape, double x, double y,
         double z, bool isStatic) {
  static int count = 0;
  sdf::Model model;
  model.SetName(std::to_string(++count));
  model.SetStatic(isStatic);
  model.SetRawPose({x, y, z, 0, 0, 0});
  sdf::Link link;
  link.SetName("link");
  const Body body = world.ConstructModel(model)->ConstructLink(link);
  body->ConstructCollision(shape);
  return body;
}

double millisecondsOfStep(physics::World3d<Features>& world) {
  physics::ForwardStep::Output output;
  physics::ForwardStep::State state;
  physics::ForwardStep::Input input;
  input.Get<Clock::duration>() = std::chrono::milliseconds(10);
  const auto begun = Clock::now();
  world.Step(output, state, input);
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ignition::plugin::Loader loader;
  loader.LoadLib(argv[1]);
  const auto engine = physics::RequestEngine3d<Features>::From(
      loader.Instantiate("ignition::physics::bullet::Plugin"));
  if (engine == nullptr) return 3;
  sdf::World empty;
  empty.SetName("world");
  const auto world = engine->ConstructWorld(empty);
  add(*world, boxOf("200 200 1"), 0, 0, -0.5, true);
  const sdf::Collision small = boxOf("0.5 0.5 0.5");
  std::vector<Body> boxes;
  for (int i = 0; i < std::atoi(argv[2]); ++i)
    boxes.push_back(
        add(*world, small, 0.6 * (i % 30), 0.6 * (i / 30 % 10), 0.3 + 0.55 * (i / 300), false));

  std::vector<double> times(100);
  for (double& time : times) time = millisecondsOfStep(*world);
  double height = 0;
  for (const Body& box : boxes) height += box->FrameDataRelativeToWorld().pose.translation().z();
  std::printf("%zu boxes, mean height %.6f\n", boxes.size(), height / double(boxes.size()));
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / double(times.size());
  std::sort(times.begin(), times.end());
  std::fprintf(stderr, "a step: median %.2f, mean %.2f, longest %.2f ms\n", times[times.size() / 2],
               mean, times.back());
}
