// SPDX-License-Identifier: Zlib
// The table of scenes. Each scene is in the file with its name.
#include "scenes/scenes.h"

#include <cmath>
#include <cstring>

BroadphaseSetup setupFor(int objects, const lbvh::Options& options) {
  BroadphaseSetup setup;
  setup.options = options;
  setup.maxObjects = objects + kMaxStaticBodies;
  // `reach` is much more than any scene needs. The debris corridor needs 2 cm per piece. The city
  // has thirty objects per block, and half its side is 24 m times the square root of its number of
  // blocks.
  const btScalar n = btScalar(objects);
  const btScalar reach = 1000 + n * btScalar(0.02) + std::sqrt(n) * 6;
  setup.low.setValue(-reach, -reach, -reach);
  setup.high.setValue(reach, reach, reach);
  return setup;
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> table = {
      {"debris", "pieces fall from the walls of a corridor: many pairs, all moving", 12486,
       buildDebris},
      {"pile", "boxes and spheres fall on a heap in a pit: dense contacts that come to rest", 4000,
       buildPile},
      {"rain",
       "five kinds of shapes fall on a mesh: few pairs, and a static box that contains all others",
       4000, buildRain},
      {"stack", "pyramids and towers that stay standing: pairs that must not be lost", 1040,
       buildStack},
      {"ragdolls", "people tumble down steps: joints, and a filter callback for jointed pairs",
       3300, buildRagdolls},
      {"city", "nine tenths never move; cars drive and people walk: the cost of resting objects",
       9720, buildCity},
      {"bullets", "a turret fires at brick walls: continuous detection, sweeps in every step", 2400,
       buildBullets},
      {"triggers", "jump pads and walking characters: ghosts, read between two steps", 1620,
       buildTriggers},
      {"softbodies", "cloth and blobs under rigid bodies: boxes that change size, twice a step",
       600, buildSoftBodies},
      {"swarm", "kinematic boxes fly: every box changes, hardly any pair lasts", 100000,
       buildSwarm},
      {"planes", "a funnel of endless planes and zones: boxes that overlap everything", 3000,
       buildPlanes},
      {"statics", "balls roll over a level of static boxes: the cost of what never moves", 200000,
       buildStatics},
  };
  return table;
}

const Scene* findScene(const char* name) {
  for (const Scene& scene : scenes()) {
    if (std::strcmp(scene.name, name) == 0) return &scene;
  }
  return nullptr;
}

std::vector<std::string> sceneNames() {
  std::vector<std::string> names;
  for (const Scene& scene : scenes()) names.emplace_back(scene.name);
  return names;
}

void addGround(World& world, btScalar halfX, btScalar halfZ) {
  world.addStatic(world.make<btBoxShape>(btVector3(halfX, 1, halfZ)), at(0, -1, 0));
}
