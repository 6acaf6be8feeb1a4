// The scenes of the samples: one table, and the functions that fill a world.
// Does not run them.
#pragma once

#include <cstdint>

#include "scenes/world.h"
#include "support/broadphases.h"

struct SceneOptions {
  int objects = 0;  ///< the ground, and the like, comes on top
  std::uint32_t seed = 1;
};

struct Scene {
  const char* name;
  const char* stresses;  ///< one line
  int defaultObjects;
  void (*build)(World& world, const SceneOptions& options);
};

/// What comes on top of SceneOptions::objects is not more than this.
inline constexpr int kMaxStaticBodies = 16;

/// For a broad phase that is to hold any scene of so many objects.
BroadphaseSetup setupFor(int objects, const lbvh::Options& options);

/// All scenes, the default first.
const std::vector<Scene>& scenes();

/// Null if there is none of that name.
const Scene* findScene(const char* name);

void buildDebris(World& world, const SceneOptions& options);
void buildPile(World& world, const SceneOptions& options);
void buildRain(World& world, const SceneOptions& options);
void buildStack(World& world, const SceneOptions& options);
void buildRagdolls(World& world, const SceneOptions& options);
void buildCity(World& world, const SceneOptions& options);
void buildBullets(World& world, const SceneOptions& options);
void buildTriggers(World& world, const SceneOptions& options);
void buildSoftBodies(World& world, const SceneOptions& options);
void buildSwarm(World& world, const SceneOptions& options);
void buildPlanes(World& world, const SceneOptions& options);

/// A transform that only moves.
inline btTransform at(btScalar x, btScalar y, btScalar z) {
  return btTransform(btQuaternion::getIdentity(), btVector3(x, y, z));
}
