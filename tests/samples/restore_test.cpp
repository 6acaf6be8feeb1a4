// SPDX-License-Identifier: Zlib
// Tests that a restored world gets the pairs of the saved world in the same order, and that this
// holds in all later steps.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "saved_worlds.h"

namespace {

using namespace saved_worlds;

TEST(Restore, RestoredWorldsContinueWithTheSamePairsInTheSameOrder) {
  std::vector<Recorded> all;
  for (const Scene& scene : scenes()) all.emplace_back(scene, 100);
  ASSERT_GE(all.size(), 10u);
  for (const Recorded& one : all)
    for (std::size_t step = 0; step < one.saves.size(); ++step)
      ASSERT_EQ(one.orders[step], bruteForce(one.saves[step])) << one.name << ", step " << step;
  Random random(50);
  for (std::size_t tried = 0; tried < 1000; ++tried) {
    const GpuLbvhOptions options = randomOptions(lbvh::Backend::host, random);
    restoreAndGoOn(options, all[tried % all.size()], all[tried / 7 % all.size()], random);
    if (HasFatalFailure()) break;
  }
  const Recorded large(*findScene("swarm"), 3000);  // large enough for several threads
  ASSERT_EQ(large.orders.back(), bruteForce(large.saves.back()));
  for (int tried = 0; tried < 10; ++tried)
    restoreAndGoOn(randomOptions(lbvh::Backend::host, random), large, all[0], random);
  lbvh::test::forceSkin("automatic");
}

/// The part of a body's state that Bullet needs to continue.
struct Motion {
  explicit Motion(const btRigidBody& body)
      : place(body.getWorldTransform()),
        velocity(body.getLinearVelocity()),
        turn(body.getAngularVelocity()),
        state(body.getActivationState()),
        restTime(body.getDeactivationTime()) {}
  void applyTo(btRigidBody& body) const {
    body.setWorldTransform(place);
    body.setInterpolationWorldTransform(place);
    body.setLinearVelocity(velocity);
    body.setAngularVelocity(turn);
    body.setInterpolationLinearVelocity(velocity);
    body.setInterpolationAngularVelocity(turn);
    body.updateInertiaTensor();
    body.forceActivationState(state);
    body.setDeactivationTime(restTime);
  }
  btTransform place;
  btVector3 velocity, turn;
  int state;
  btScalar restTime;
};

std::vector<Motion> motionsOf(World& world) {
  std::vector<Motion> motions;
  const btCollisionObjectArray& all = world.bullet().getCollisionObjectArray();
  for (int i = 0; i < all.size(); ++i) motions.emplace_back(*btRigidBody::upcast(all[i]));
  return motions;
}

void dropContacts(World& world) {
  const btCollisionObjectArray& all = world.bullet().getCollisionObjectArray();
  btOverlappingPairCache* cache = world.broadphase().getOverlappingPairCache();
  for (int i = 0; i < all.size(); ++i)
    cache->cleanProxyFromPairs(all[i]->getBroadphaseHandle(), world.bullet().getDispatcher());
}

std::unique_ptr<GpuLbvhBroadphase> makeSorting() {
  GpuLbvhOptions options;
  options.sortsPairs = true;
  return std::make_unique<GpuLbvhBroadphase>(options);
}

std::unique_ptr<World> buildSorted(const Scene& scene) {
  auto world = std::make_unique<World>(makeSorting());
  scene.build(*world, {150, 1});
  return world;
}

// Bullet's contact points depend on earlier steps, and the restored world has none. So the original
// world drops its contact points when it is saved.
TEST(Restore, ASimulationGoesOnBitForBitIfContactsAreDropped) {
  for (const char* name : {"debris", "pile", "stack", "planes"}) {
    const Scene& scene = *findScene(name);
    const auto saved = buildSorted(scene);
    for (int step = 0; step < 70; ++step) saved->step();
    const std::vector<Motion> motions = motionsOf(*saved);
    dropContacts(*saved);
    const auto restored = buildSorted(scene);
    const btCollisionObjectArray& all = restored->bullet().getCollisionObjectArray();
    for (int i = 0; i < all.size(); ++i)
      motions[static_cast<std::size_t>(i)].applyTo(*btRigidBody::upcast(all[i]));
    for (int step = 0; step < 100; ++step) {
      saved->step();
      restored->step();
      ASSERT_EQ(restored->hash(), saved->hash()) << name << ", step " << step;
    }
    EXPECT_GT(saved->pairs(), 50) << name;
  }
}

TEST(Restore, ASimulationGoesOnBitForBitAfterAMigration) {
  for (const char* name : {"debris", "pile", "stack"}) {
    const auto stays = buildSorted(*findScene(name)), moves = buildSorted(*findScene(name));
    for (int step = 0; step < 150; ++step) {
      if (step % 40 == 39) moves->setBroadphase(makeSorting());
      stays->step();
      moves->step();
      ASSERT_EQ(moves->hash(), stays->hash()) << name << ", step " << step;
    }
  }
}

}  // namespace
