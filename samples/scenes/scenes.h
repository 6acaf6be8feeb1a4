// SPDX-License-Identifier: Zlib
// The scenes of the samples: one table, and the functions that fill a world. Does not run scenes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenes/world.h"
#include "support/broadphases.h"

struct SceneOptions {
  int objects = 0;  ///< without the ground and other static bodies
  std::uint32_t seed = 1;
};

struct Scene {
  const char* name;
  const char* stresses;  ///< a line for users: what happens, and what it tests
  int defaultObjects;
  void (*build)(World& world, const SceneOptions& options);
};

/// A scene adds at most this many static bodies, in addition to SceneOptions::objects.
inline constexpr int kMaxStaticBodies = 16;

/// The settings of a broad phase that can hold any scene with this number of objects.
BroadphaseSetup setupFor(int objects, const lbvh::Options& options);

/// All scenes, the default first.
const std::vector<Scene>& scenes();

/// Null if no scene has that name.
const Scene* findScene(const char* name);

/// The names of all scenes, in the order of scenes().
std::vector<std::string> sceneNames();

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
void buildStatics(World& world, const SceneOptions& options);

/// A static floor around the origin, with its top at height 0.
void addGround(World& world, btScalar halfX, btScalar halfZ);

/// A transform without rotation.
inline btTransform at(btScalar x, btScalar y, btScalar z) {
  return btTransform(btQuaternion::getIdentity(), btVector3(x, y, z));
}
