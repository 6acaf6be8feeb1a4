// SPDX-License-Identifier: Zlib
// The triggers scene: balls and boxes fall on pads that throw them up, and characters walk among
// them. Pads and characters are ghosts, whose pairs are read between two steps.
#include <BulletDynamics/Character/btKinematicCharacterController.h>

#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kTriggersTile = 4;         // m, side of a tile with a pad in its middle
constexpr btScalar kPad = btScalar(1.2);      // m, half the side of a pad
constexpr btScalar kThrow = 7;                // m/s, upwards
constexpr btScalar kStride = btScalar(0.06);  // m a step
constexpr btScalar kTriggersWall = 3;         // m, height of the wall around the yard

struct Character {
  btKinematicCharacterController* controller;
  btScalar phase, turn;  // rad, rad per step
};

/// Lets a character walk in a circle, independently of all other objects.
void walk(const Character& one, int step) {
  const btScalar angle = one.phase + one.turn * btScalar(step);
  one.controller->setWalkDirection(btVector3(std::cos(angle), 0, std::sin(angle)) * kStride);
}

/// Throws the bodies in the pad upward, except bodies that already fly upward.
void throwUp(const btPairCachingGhostObject& pad) {
  for (int i = 0; i < pad.getNumOverlappingObjects(); ++i) {
    auto* body = btRigidBody::upcast(const_cast<btCollisionObject*>(pad.getOverlappingObject(i)));
    if (body == nullptr || body->getLinearVelocity().y() > 1) continue;
    btVector3 velocity = body->getLinearVelocity();
    velocity.setY(kThrow);
    body->setLinearVelocity(velocity);
    body->activate();
  }
}

void addYard(World& world, btScalar half) {
  addGround(world, half + 1, half + 1);
  auto& alongX = world.make<btBoxShape>(btVector3(half + 1, kTriggersWall / 2, btScalar(0.5)));
  auto& alongZ = world.make<btBoxShape>(btVector3(btScalar(0.5), kTriggersWall / 2, half + 1));
  for (const btScalar side : {btScalar(-1), btScalar(1)}) {
    world.addStatic(alongX, at(0, kTriggersWall / 2, side * (half + btScalar(0.5))));
    world.addStatic(alongZ, at(side * (half + btScalar(0.5)), kTriggersWall / 2, 0));
  }
}

Character addCharacter(World& world, btConvexShape& capsule, const btVector3& place,
                       Random& random) {
  constexpr int kMeets = btBroadphaseProxy::AllFilter;
  btPairCachingGhostObject& ghost = world.addGhost(capsule, at(place.x(), place.y(), place.z()),
                                                   btCollisionObject::CF_CHARACTER_OBJECT,
                                                   btBroadphaseProxy::CharacterFilter, kMeets);
  auto controller = std::make_unique<btKinematicCharacterController>(
      &ghost, &capsule, btScalar(0.3), btVector3(0, 1, 0));
  controller->setGravity(world.bullet().getGravity());
  // The controller has rotated the ghost from z up to y up. Undo this rotation.
  ghost.setWorldTransform(at(place.x(), place.y(), place.z()));
  const Character character{controller.get(), random.between(0, SIMD_2_PI),
                            random.between(btScalar(-0.03), btScalar(0.03))};
  world.add(std::move(controller));
  return character;
}

}  // namespace

void buildTriggers(World& world, const SceneOptions& options) {
  Random random(options.seed);
  const int pads = std::max(1, options.objects / 5);
  const int characters = std::max(1, options.objects / 50);
  const int side = static_cast<int>(std::ceil(std::sqrt(double(pads))));
  const btScalar half = btScalar(side) * kTriggersTile / 2;
  addYard(world, half);

  std::vector<const btPairCachingGhostObject*> ghosts;
  auto& pad = world.make<btBoxShape>(btVector3(kPad, btScalar(0.3), kPad));
  for (int i = 0; i < pads; ++i) {
    const btTransform place =
        at((btScalar(i % side) + btScalar(0.5)) * kTriggersTile - half, btScalar(0.3),
           (btScalar(i / side) + btScalar(0.5)) * kTriggersTile - half);
    ghosts.push_back(&world.addGhost(
        pad, place, btCollisionObject::CF_NO_CONTACT_RESPONSE, btBroadphaseProxy::SensorTrigger,
        btBroadphaseProxy::DefaultFilter | btBroadphaseProxy::CharacterFilter));
  }

  std::vector<Character> crowd;
  auto& capsule = world.make<btCapsuleShape>(btScalar(0.35), btScalar(1.1));
  for (int i = 0; i < characters; ++i) {
    const btVector3 place = random.inCube() * (half - 1);
    crowd.push_back(addCharacter(world, capsule, {place.x(), btScalar(0.95), place.z()}, random));
  }

  btCollisionShape* const shapes[] = {
      &world.make<btSphereShape>(btScalar(0.35)),
      &world.make<btBoxShape>(btVector3(btScalar(0.3), btScalar(0.3), btScalar(0.3)))};
  for (int i = pads + characters; i < options.objects; ++i) {
    const btVector3 place = random.inCube() * (half - 1);
    const btScalar height = random.between(2, 10);
    world.addMoving(*shapes[random.below(2)], 1, at(place.x(), height, place.z()));
  }

  world.beforeEachStep([ghosts, crowd](int step) {
    for (const Character& one : crowd) walk(one, step);
    for (const btPairCachingGhostObject* ghost : ghosts) throwUp(*ghost);
  });
}
