// SPDX-License-Identifier: Zlib
// Reconstructs the debris scene of the founding documents: the two walls of a corridor collapse
// into 12,486 convex fragments and boxes. The original data set was not published.
//
// The documents count 73,704 pairs of potentially colliding objects. Here the exact count reaches
// that number while the pieces hit the floor. It counts overlaps of the proxies' own boxes, which
// are not fattened, in runs with btDbvtBroadphase. With seed 1 there are 72,769 pairs after 61
// steps, 73,997 (+0.4 %) after 62, and 75,348 after 63. The maximum is 86,609 after 75. There are
// 76,118 after 120, when the pile has settled. With seed 2 there are 73,547 after 61 steps.
#include "scenes/scenes.h"
#include "support/random.h"

namespace {

// A wall is a grid of cells with one piece in each. The numbers below were tuned together to
// reproduce the number of pairs. The number of pairs per piece does not depend on the number of
// pieces.
const btVector3 kCell(btScalar(0.8), btScalar(0.8), 1);  // m; size across, up, along the corridor
constexpr int kDebrisLayers = 2;                         // cells across a wall
constexpr int kDebrisRows = 12;                          // cells up a wall
constexpr btScalar kHalfWidth = 8;  // m, half the distance between the static walls
constexpr btScalar kHeadroom = 2;   // m, distance from the top row to the ceiling
constexpr btScalar kDebrisGap =
    btScalar(0.06);  // m; more than 2 * 0.02, because Bullet enlarges each box by 0.02
constexpr btScalar kMargin = btScalar(0.01);     // m; Bullet's default 0.04 would enlarge fragments
constexpr btScalar kDebrisSlab = btScalar(0.5);  // m, half the thickness of floor and walls
constexpr btScalar kPush = 4;  // m/s, speed of the fastest piece towards the middle
constexpr btScalar kDebrisJitter = btScalar(0.5);  // m/s
constexpr btScalar kSpin = 2;                      // rad/s
constexpr btScalar kDebrisMass = 50;               // kg
constexpr int kHulls = 48;                         // number of hulls, which all pieces share
constexpr int kBoxes = 24;

btVector3 halfPiece() { return (kCell - btVector3(kDebrisGap, kDebrisGap, kDebrisGap)) / 2; }

/// A broken stone of 8 to 12 points: a cell's corners, moved inward by up to 40 %, and a few points
/// on the cell's faces.
btConvexHullShape& makeFragment(World& world, Random& random) {
  auto& hull = world.make<btConvexHullShape>();
  hull.setMargin(kMargin);
  const btVector3 half = halfPiece() - btVector3(kMargin, kMargin, kMargin);
  for (int corner = 0; corner < 8; ++corner) {
    btVector3 point;
    for (int axis = 0; axis < 3; ++axis) {
      const btScalar reach = half[axis] * random.between(btScalar(0.6), 1);
      point[axis] = (corner >> axis & 1) != 0 ? reach : -reach;
    }
    hull.addPoint(point, false);
  }
  const int extra = random.below(5);
  for (int i = 0; i < extra; ++i) {
    btVector3 point = random.inCube() * half;
    const int axis = random.below(3);
    point[axis] = point[axis] < 0 ? -half[axis] : half[axis];
    hull.addPoint(point, false);
  }
  hull.recalcLocalAabb();
  return hull;
}

btBoxShape& makeBrick(World& world, Random& random) {
  btVector3 half = halfPiece();
  for (int axis = 0; axis < 3; ++axis) half[axis] *= random.between(btScalar(0.7), 1);
  return world.make<btBoxShape>(half);
}

void addCorridor(World& world, btScalar halfLength) {
  const btScalar halfHeight = (btScalar(kDebrisRows) * kCell.y() + kHeadroom) / 2;
  const btScalar overlap = 2 * kDebrisSlab;  // so that no piece slips out at an edge
  auto& floor =
      world.make<btBoxShape>(btVector3(kHalfWidth + overlap, kDebrisSlab, halfLength + overlap));
  auto& wall = world.make<btBoxShape>(btVector3(kDebrisSlab, halfHeight, halfLength + overlap));
  auto& end = world.make<btBoxShape>(btVector3(kHalfWidth, halfHeight, kDebrisSlab));
  world.addStatic(floor, at(0, -kDebrisSlab, 0));
  world.addStatic(floor, at(0, 2 * halfHeight + kDebrisSlab, 0));
  for (const btScalar side : {btScalar(-1), btScalar(1)}) {
    world.addStatic(wall, at(side * (kHalfWidth + kDebrisSlab), halfHeight, 0));
    world.addStatic(end, at(0, halfHeight, side * (halfLength + kDebrisSlab)));
  }
}

/// Sets the initial motion of a piece of the wall at `side`. The inner layer is pushed harder.
void release(btRigidBody& piece, btScalar side, int layer, Random& random) {
  btVector3 velocity = random.inCube() * kDebrisJitter;
  const btScalar push = kPush * btScalar(layer + 1) / btScalar(kDebrisLayers);
  velocity.setX(velocity.x() - side * push * random.unit());
  piece.setLinearVelocity(velocity);
  piece.setAngularVelocity(random.inCube() * kSpin);
}

}  // namespace

void buildDebris(World& world, const SceneOptions& options) {
  Random random(options.seed);
  std::vector<btCollisionShape*> shapes;
  for (int i = 0; i < kHulls; ++i) shapes.push_back(&makeFragment(world, random));
  for (int i = 0; i < kBoxes; ++i) shapes.push_back(&makeBrick(world, random));

  constexpr int perColumn = 2 * kDebrisLayers * kDebrisRows;
  const int columns = (options.objects + perColumn - 1) / perColumn;
  const btScalar halfLength = btScalar(columns) * kCell.z() / 2;
  addCorridor(world, halfLength);

  for (int i = 0; i < options.objects; ++i) {
    const btScalar side = i % 2 == 0 ? -1 : 1;
    const int cell = i / 2;
    const int layer = cell % kDebrisLayers;
    const int row = cell / kDebrisLayers % kDebrisRows;
    const int column = cell / (kDebrisLayers * kDebrisRows);
    const btVector3 place(side * (kHalfWidth - (btScalar(layer) + btScalar(0.5)) * kCell.x()),
                          (btScalar(row) + btScalar(0.5)) * kCell.y(),
                          (btScalar(column) + btScalar(0.5)) * kCell.z() - halfLength);
    auto& shape = *shapes[static_cast<std::size_t>(random.below(kHulls + kBoxes))];
    release(world.addMoving(shape, kDebrisMass, at(place.x(), place.y(), place.z())), side, layer,
            random);
  }
}
