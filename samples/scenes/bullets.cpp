// SPDX-License-Identifier: Zlib
// The bullets scene: a turret fires into a ring of brick walls. In one step a bullet flies farther
// than a wall is thick. Continuous detection sweeps each bullet through the broad phase in every
// step.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

const btVector3 kBrick(btScalar(0.5), btScalar(0.25),
                       btScalar(0.25));  // m, half sides of a brick; x is along the wall
constexpr int kBulletsRows = 10;
constexpr int kColumns = 12;
constexpr int kBulletsWall = kBulletsRows * kColumns;  // bricks
constexpr btScalar kBulletsGap = btScalar(0.01);       // m
constexpr btScalar kRadius = btScalar(0.1);            // m, radius of a bullet
constexpr btScalar kBulletsMass = btScalar(0.6);       // kg
constexpr btScalar kBulletsSpeed = 120;                // m/s: 2 m a step
constexpr btScalar kMuzzle = btScalar(1.2);  // m, distance of a fired bullet from the turret's axis
constexpr btScalar kBulletsTower = 2;        // m, the turret's height
constexpr btScalar kBehind = 15;             // m, distance from the ring to the fence
constexpr btScalar kFence = 8;               // m, height of the fence
constexpr int kReload = 100;                 // steps until a bullet is fired again

/// The position where a bullet waits, on one of the rings above the turret.
btVector3 rack(int index) {
  constexpr int perRing = 24;
  const btScalar angle = btScalar(index % perRing) * SIMD_2_PI / perRing;
  const btScalar height = kBulletsTower + 1 + btScalar(index / perRing) * 3 * kRadius;
  return {std::cos(angle), height, std::sin(angle)};
}

void addWall(World& world, btCollisionShape& brick, int bricks, btScalar angle, btScalar distance) {
  const btTransform place(btQuaternion(btVector3(0, 1, 0), angle), btVector3(0, 0, 0));
  for (int i = 0; i < bricks; ++i) {
    const int row = i / kColumns;
    const btScalar shift = row % 2 == 0 ? 0 : btScalar(0.5);
    const btVector3 inWall(
        (btScalar(i % kColumns) + shift - btScalar(kColumns) / 2) * (2 * kBrick.x() + kBulletsGap),
        (btScalar(2 * row) + 1) * kBrick.y(), distance);
    btRigidBody& body = world.addMoving(brick, 6, btTransform(place.getRotation(), place * inWall));
    body.setFriction(btScalar(0.8));
    body.setActivationState(ISLAND_SLEEPING);
  }
}

/// Adds the ground, and walls that stop bullets that fly over the bricks.
void addRange(World& world, btScalar half) {
  addGround(world, half, half);
  auto& alongX = world.make<btBoxShape>(btVector3(half, kFence / 2, 1));
  auto& alongZ = world.make<btBoxShape>(btVector3(1, kFence / 2, half));
  for (const btScalar side : {btScalar(-1), btScalar(1)}) {
    world.addStatic(alongX, at(0, kFence / 2, side * (half - 1)));
    world.addStatic(alongZ, at(side * (half - 1), kFence / 2, 0));
  }
}

/// Turns, and fires some bullets in each step. Reuses the oldest bullets.
class Turret {
 public:
  Turret(std::vector<btRigidBody*> bullets, int walls, std::uint32_t seed)
      : bullets_(std::move(bullets)),
        walls_(walls),
        random_(seed),
        perStep_((static_cast<int>(bullets_.size()) + kReload - 1) / kReload) {}

  void fire() {
    for (int i = 0; i < perStep_; ++i) {
      // Aims at one wall after another.
      const btScalar aim =
          btScalar(shots_ % walls_) + random_.between(btScalar(-0.3), btScalar(0.3));
      const btScalar angle = aim * SIMD_2_PI / btScalar(walls_);
      const btVector3 ahead(std::sin(angle), 0, std::cos(angle));
      btVector3 velocity = ahead * kBulletsSpeed;
      velocity.setY(random_.between(-6, 12));
      shoot(*bullets_[static_cast<std::size_t>(shots_) % bullets_.size()],
            ahead * kMuzzle + btVector3(0, kBulletsTower, 0), velocity);
      ++shots_;
    }
  }

 private:
  static void shoot(btRigidBody& bullet, const btVector3& muzzle, const btVector3& velocity) {
    const btTransform start(btQuaternion::getIdentity(), muzzle);
    bullet.setWorldTransform(start);
    bullet.setInterpolationWorldTransform(start);
    bullet.setLinearVelocity(velocity);
    bullet.setAngularVelocity(btVector3(0, 0, 0));
    bullet.forceActivationState(ACTIVE_TAG);
    bullet.setDeactivationTime(0);
  }

  std::vector<btRigidBody*> bullets_;
  int walls_;
  Random random_;
  int perStep_;
  int shots_ = 0;
};

}  // namespace

void buildBullets(World& world, const SceneOptions& options) {
  const int bullets = std::max(1, options.objects / 5);
  const int bricks = options.objects - bullets;
  const int walls = std::max(1, (bricks + kBulletsWall - 1) / kBulletsWall);
  const btScalar width = btScalar(kColumns + 2) * 2 * kBrick.x();
  const btScalar distance = btMax(btScalar(12), width * btScalar(walls) / SIMD_2_PI);

  addRange(world, distance + kBehind);
  world.addStatic(
      world.make<btCylinderShape>(btVector3(btScalar(0.8), kBulletsTower / 2, btScalar(0.8))),
      at(0, kBulletsTower / 2, 0));
  auto& brick = world.make<btBoxShape>(kBrick);
  for (int wall = 0; wall < walls; ++wall)
    addWall(world, brick, std::min(kBulletsWall, bricks - wall * kBulletsWall),
            btScalar(wall) * SIMD_2_PI / btScalar(walls), distance);

  auto& ball = world.make<btSphereShape>(kRadius);
  std::vector<btRigidBody*> magazine;
  for (int i = 0; i < bullets; ++i) {
    const btVector3 place = rack(i);
    btRigidBody& bullet = world.addMoving(ball, kBulletsMass, at(place.x(), place.y(), place.z()));
    bullet.setCcdMotionThreshold(kRadius);
    bullet.setCcdSweptSphereRadius(kRadius * btScalar(0.8));
    bullet.forceActivationState(DISABLE_SIMULATION);  // the bullet waits in the air
    magazine.push_back(&bullet);
  }
  world.beforeEachStep(
      [turret = Turret(std::move(magazine), walls, options.seed)](int) mutable { turret.fire(); });
}
