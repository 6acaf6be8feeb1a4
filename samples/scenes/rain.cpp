// SPDX-License-Identifier: Zlib
// The rain scene: five kinds of shapes fall on a hilly triangle mesh with a raised rim.
// The mesh is one static object whose box holds all others: the worst case for a tree.
#include <algorithm>
#include <cmath>
#include <memory>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kSpacing = btScalar(2.5);  // m, between the drops of a sheet
constexpr btScalar kSheet = 3;                // m, between sheets
constexpr int kSheets = 4;
constexpr btScalar kHeight = 4;  // m, of the lowest sheet; the hills end at 2
constexpr btScalar kTile = 2;    // m, two triangles
constexpr int kRim = 6;          // tiles, rising by 1.5 m each, to hold what rolls

btScalar heightAt(int x, int z, int tiles) {
  const int toEdge = std::min({x, z, tiles - x, tiles - z});
  const btScalar rim = btScalar(std::max(0, kRim - toEdge)) * btScalar(1.5);
  return rim + std::sin(btScalar(x) * btScalar(0.7)) + std::sin(btScalar(z) * btScalar(0.45));
}

/// A square of tiles around the origin.
void addTerrain(World& world, int tiles) {
  auto& mesh = world.make<btTriangleMesh>();
  mesh.preallocateVertices(6 * tiles * tiles);
  mesh.preallocateIndices(6 * tiles * tiles);
  const auto corner = [tiles](int x, int z) {
    return btVector3((btScalar(x) - btScalar(tiles) / 2) * kTile, heightAt(x, z, tiles),
                     (btScalar(z) - btScalar(tiles) / 2) * kTile);
  };
  for (int z = 0; z < tiles; ++z) {
    for (int x = 0; x < tiles; ++x) {
      mesh.addTriangle(corner(x, z), corner(x, z + 1), corner(x + 1, z));
      mesh.addTriangle(corner(x + 1, z), corner(x, z + 1), corner(x + 1, z + 1));
    }
  }
  auto& terrain = world.make<btBvhTriangleMeshShape>(&mesh, true);
  terrain.setMargin(btScalar(0.1));  // m; a mesh is thin, and drops push each other through
  world.addStatic(terrain, at(0, 0, 0));
}

btConvexHullShape& makeDrop(World& world, Random& random) {
  auto& hull = world.make<btConvexHullShape>();
  for (int i = 0; i < 10; ++i) {
    // On a sphere, so that no point is lost inside the hull.
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
  const btScalar width = btScalar(side) * kSpacing;
  addTerrain(world, static_cast<int>(width / kTile) + 2 * kRim + 1);

  for (int i = 0; i < options.objects; ++i) {
    const int sheet = i / perSheet;
    const int drop = i % perSheet;
    btVector3 place((btScalar(drop % side) + btScalar(0.5)) * kSpacing - width / 2,
                    kHeight + btScalar(sheet) * kSheet,
                    (btScalar(drop / side) + btScalar(0.5)) * kSpacing - width / 2);
    place += random.inCube() * btScalar(0.8);
    auto& body = world.addMoving(*shapes[random.below(5)], 1, at(place.x(), place.y(), place.z()));
    body.setAngularVelocity(random.inCube() * 3);
    // Fast drops would pass the mesh, which has no inside. The sweeps that stop them are casts
    // through the broad phase.
    body.setCcdMotionThreshold(btScalar(0.1));
    body.setCcdSweptSphereRadius(btScalar(0.15));
    // Without it, round shapes roll through the valleys for ever.
    body.setRollingFriction(btScalar(0.02));
    body.setSpinningFriction(btScalar(0.02));
  }
}
