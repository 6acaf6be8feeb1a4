// SPDX-License-Identifier: Zlib
// The pile scene: boxes and spheres of two sizes dropped into a walled pit.
// Dense contacts: the count of pairs grows while the heap builds up, and then hardly changes.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kSpacing = btScalar(1.2);  // m; the largest piece is 1 m wide
constexpr btScalar kJitter = btScalar(0.08);  // m, so that columns do not stand
constexpr btScalar kDrop = 1;                 // m, from the lowest layer to the floor
constexpr btScalar kSlab = 1;                 // m, half the thickness of floor and walls

void addPit(World& world, btScalar halfWidth, btScalar halfHeight) {
  auto& floor =
      world.make<btBoxShape>(btVector3(halfWidth + 2 * kSlab, kSlab, halfWidth + 2 * kSlab));
  auto& wallX = world.make<btBoxShape>(btVector3(kSlab, halfHeight, halfWidth + 2 * kSlab));
  auto& wallZ = world.make<btBoxShape>(btVector3(halfWidth, halfHeight, kSlab));
  world.addStatic(floor, at(0, -kSlab, 0));
  for (const btScalar side : {btScalar(-1), btScalar(1)}) {
    world.addStatic(wallX, at(side * (halfWidth + kSlab), halfHeight, 0));
    world.addStatic(wallZ, at(0, halfHeight, side * (halfWidth + kSlab)));
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

  // Half as high as wide: under a higher heap Bullet's solver lets the lowest pieces sink into each
  // other.
  const int side = std::max(1, static_cast<int>(std::cbrt(options.objects * 2.0)));
  const int layers = (options.objects + side * side - 1) / (side * side);
  const btScalar halfWidth = btScalar(side) * kSpacing / 2 + kJitter;
  addPit(world, halfWidth, (btScalar(layers) * kSpacing + kDrop) / 2);

  for (int i = 0; i < options.objects; ++i) {
    const btVector3 cell(btScalar(i % side), btScalar(i / (side * side)),
                         btScalar(i / side % side));
    btVector3 place = (cell + btVector3(btScalar(0.5), 0, btScalar(0.5))) * kSpacing;
    place += btVector3(-btScalar(side) * kSpacing / 2, kDrop, -btScalar(side) * kSpacing / 2);
    place += random.inCube() * kJitter;
    world.addMoving(*shapes[random.below(4)], 1, at(place.x(), place.y(), place.z()));
  }
}
