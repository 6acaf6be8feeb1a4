// SPDX-License-Identifier: Zlib
// The pile scene: boxes and spheres of two sizes fall into a walled pit. Contacts are dense. The
// number of pairs grows while the heap builds up, and then hardly changes.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kPileSpacing = btScalar(1.2);  // m; the largest piece is 1 m wide
constexpr btScalar kPileJitter = btScalar(0.08);  // m; makes columns fall over
constexpr btScalar kDrop = 1;                     // m, distance from the lowest layer to the floor
constexpr btScalar kPileSlab = 1;                 // m, half the thickness of floor and walls

void addPit(World& world, btScalar halfWidth, btScalar halfHeight) {
  auto& floor = world.make<btBoxShape>(
      btVector3(halfWidth + 2 * kPileSlab, kPileSlab, halfWidth + 2 * kPileSlab));
  auto& wallX = world.make<btBoxShape>(btVector3(kPileSlab, halfHeight, halfWidth + 2 * kPileSlab));
  auto& wallZ = world.make<btBoxShape>(btVector3(halfWidth, halfHeight, kPileSlab));
  world.addStatic(floor, at(0, -kPileSlab, 0));
  for (const btScalar side : {btScalar(-1), btScalar(1)}) {
    world.addStatic(wallX, at(side * (halfWidth + kPileSlab), halfHeight, 0));
    world.addStatic(wallZ, at(0, halfHeight, side * (halfWidth + kPileSlab)));
  }
}

}  // namespace

void buildPile(World& world, const SceneOptions& options) {
  Random random(options.seed);
  btCollisionShape* const shapes[] = {
      &world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5))),
      &world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.25), btScalar(0.35))),
      &world.make<btSphereShape>(btScalar(0.5)),
      &world.make<btSphereShape>(btScalar(0.3)),
  };

  // The heap is half as high as wide. In a higher heap Bullet's solver would let the lowest pieces
  // sink into each other.
  const int side = std::max(1, static_cast<int>(std::cbrt(options.objects * 2.0)));
  const int layers = (options.objects + side * side - 1) / (side * side);
  const btScalar halfWidth = btScalar(side) * kPileSpacing / 2 + kPileJitter;
  addPit(world, halfWidth, (btScalar(layers) * kPileSpacing + kDrop) / 2);

  for (int i = 0; i < options.objects; ++i) {
    const btVector3 cell(btScalar(i % side), btScalar(i / (side * side)),
                         btScalar(i / side % side));
    btVector3 place = (cell + btVector3(btScalar(0.5), 0, btScalar(0.5))) * kPileSpacing;
    place +=
        btVector3(-btScalar(side) * kPileSpacing / 2, kDrop, -btScalar(side) * kPileSpacing / 2);
    place += random.inCube() * kPileJitter;
    world.addMoving(*shapes[random.below(4)], 1, at(place.x(), place.y(), place.z()));
  }
}
