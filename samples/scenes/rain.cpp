// SPDX-License-Identifier: Zlib
// The rain scene: five kinds of shapes fall on a hilly triangle mesh with a raised rim. The mesh is
// one static object, whose box contains all others. That is the worst case for a tree.
#include <algorithm>
#include <cmath>
#include <memory>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kRainSpacing = btScalar(2.5);  // m, distance between the drops of a sheet
constexpr btScalar kSheet = 3;                    // m, distance between sheets
constexpr int kSheets = 4;
constexpr btScalar kHeight = 4;    // m, height of the lowest sheet; the hills are up to 2 m high
constexpr btScalar kRainTile = 2;  // m, side of a tile of two triangles
constexpr int kRim = 6;  // tiles, each 1.5 m higher than the one before, so that nothing rolls out

btScalar heightAt(int x, int z, int tiles) {
  const int toEdge = std::min({x, z, tiles - x, tiles - z});
  const btScalar rim = btScalar(std::max(0, kRim - toEdge)) * btScalar(1.5);
  return rim + std::sin(btScalar(x) * btScalar(0.7)) + std::sin(btScalar(z) * btScalar(0.45));
}

/// Adds a square of tiles around the origin.
void addTerrain(World& world, int tiles) {
  auto& mesh = world.make<btTriangleMesh>();
  mesh.preallocateVertices(6 * tiles * tiles);
  mesh.preallocateIndices(6 * tiles * tiles);
  const auto corner = [tiles](int x, int z) {
    return btVector3((btScalar(x) - btScalar(tiles) / 2) * kRainTile, heightAt(x, z, tiles),
                     (btScalar(z) - btScalar(tiles) / 2) * kRainTile);
  };
  for (int z = 0; z < tiles; ++z) {
    for (int x = 0; x < tiles; ++x) {
      mesh.addTriangle(corner(x, z), corner(x, z + 1), corner(x + 1, z));
      mesh.addTriangle(corner(x + 1, z), corner(x, z + 1), corner(x + 1, z + 1));
    }
  }
  auto& terrain = world.make<btBvhTriangleMeshShape>(&mesh, true);
  terrain.setMargin(btScalar(0.1));  // m; a mesh is thin, so drops could push each other through it
  world.addStatic(terrain, at(0, 0, 0));
}

btConvexHullShape& makeDrop(World& world, Random& random) {
  auto& hull = world.make<btConvexHullShape>();
  for (int i = 0; i < 10; ++i) {
    // The points are on a sphere, so that no point is inside the hull.
    const btVector3 point = random.inCube();
    hull.addPoint(point / std::max(point.length(), btScalar(0.01)) * btScalar(0.5), false);
  }
  hull.recalcLocalAabb();
  return hull;
}

}  // namespace

void buildRain(World& world, const SceneOptions& options) {
  Random random(options.seed);
  const btScalar half = btScalar(0.4);
  btCollisionShape* const shapes[] = {
      &world.make<btBoxShape>(btVector3(half, half, half)),
      &world.make<btSphereShape>(half),
      &world.make<btCapsuleShape>(btScalar(0.25), btScalar(0.6)),
      &world.make<btCylinderShape>(btVector3(half, half / 2, half)),
      &makeDrop(world, random),
  };

  const int perSheet = (options.objects + kSheets - 1) / kSheets;
  const int side = std::max(1, static_cast<int>(std::ceil(std::sqrt(double(perSheet)))));
  const btScalar width = btScalar(side) * kRainSpacing;
  addTerrain(world, static_cast<int>(width / kRainTile) + 2 * kRim + 1);

  for (int i = 0; i < options.objects; ++i) {
    const int sheet = i / perSheet;
    const int drop = i % perSheet;
    btVector3 place((btScalar(drop % side) + btScalar(0.5)) * kRainSpacing - width / 2,
                    kHeight + btScalar(sheet) * kSheet,
                    (btScalar(drop / side) + btScalar(0.5)) * kRainSpacing - width / 2);
    place += random.inCube() * btScalar(0.8);
    auto& body = world.addMoving(*shapes[random.below(5)], 1, at(place.x(), place.y(), place.z()));
    body.setAngularVelocity(random.inCube() * 3);
    // Fast drops would pass through the mesh, which has no inside. Continuous detection stops them
    // by sweeps through the broad phase.
    body.setCcdMotionThreshold(btScalar(0.1));
    body.setCcdSweptSphereRadius(btScalar(0.15));
    // Without rolling friction, round shapes would roll through the valleys for ever.
    body.setRollingFriction(btScalar(0.02));
    body.setSpinningFriction(btScalar(0.02));
  }
}
