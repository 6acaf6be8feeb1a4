// SPDX-License-Identifier: Zlib
// The statics scene: a level of static boxes, on which a few balls fall and roll. As in games,
// Bullet is told not to update the boxes of inactive objects, such as static ones. So the time of a
// step should depend on the balls only, not on the size of the level.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr int kMaxBalls = 2000;
constexpr int kObjectsPerBall = 10;               // minimum
constexpr btScalar kLevelTile = 2;                // m, distance between the centres of two boxes
constexpr btScalar kUnevenness = btScalar(0.15);  // m, maximum height offset of a box
constexpr btScalar kFall = btScalar(2.1);         // m, initial mean height of the balls
/// In m. Balls are wider than the gaps, so that none falls through.
constexpr btScalar kBallRadius = btScalar(0.4);

}  // namespace

void buildStatics(World& world, const SceneOptions& options) {
  Random random(options.seed);
  world.bullet().setForceUpdateAllAabbs(false);
  const int balls = std::clamp(options.objects / kObjectsPerBall, 1, kMaxBalls);
  const int tiles = options.objects - balls;
  const int side = std::max(1, static_cast<int>(std::ceil(std::sqrt(double(tiles)))));
  const btScalar first = -(btScalar(side) - 1) * kLevelTile / 2;
  const auto centre = [&](int tile) {
    return btVector3(first + btScalar(tile % side) * kLevelTile, 0,
                     first + btScalar(tile / side) * kLevelTile);
  };

  auto& box = world.make<btBoxShape>(btVector3(btScalar(0.9), btScalar(0.5), btScalar(0.9)));
  for (int i = 0; i < tiles; ++i) {
    const btVector3 place = centre(i) + btVector3(0, random.inCube().y() * kUnevenness, 0);
    world.addStatic(box, at(place.x(), place.y(), place.z()));
  }
  auto& ball = world.make<btSphereShape>(kBallRadius);
  for (int i = 0; i < balls; ++i) {
    const int tile = tiles > 0 ? random.below(tiles) : 0;
    const btVector3 place = centre(tile) + random.inCube() + btVector3(0, kFall, 0);
    auto& body = world.addMoving(ball, 1, at(place.x(), place.y(), place.z()));
    body.setLinearVelocity(random.inCube() * 3);
    body.setRollingFriction(btScalar(0.01));
    body.setSpinningFriction(btScalar(0.01));
  }
}
