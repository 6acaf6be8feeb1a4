// SPDX-License-Identifier: Zlib
// Tests migrateBroadphase between all kinds of broad phases. A running world must continue
// unchanged.
#include "migrateBroadphase.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "migrate_kinds.h"
#include "scenes/scenes.h"

namespace {

using namespace migrate_kinds;

/// The state of all objects. A migration must not change it.
struct Snapshot {
  explicit Snapshot(btCollisionWorld& world) {
    const btCollisionObjectArray& objects = world.getCollisionObjectArray();
    for (int i = 0; i < objects.size(); ++i) {
      const btBroadphaseProxy* proxy = objects[i]->getBroadphaseHandle();
      const btRigidBody* body = btRigidBody::upcast(objects[i]);
      numbers.push_back(proxy->m_collisionFilterGroup);
      numbers.push_back(proxy->m_collisionFilterMask);
      numbers.push_back(objects[i]->getActivationState());
      vectors.push_back(proxy->m_aabbMin);
      vectors.push_back(proxy->m_aabbMax);
      for (int row = 0; row < 3; ++row)
        vectors.push_back(objects[i]->getWorldTransform().getBasis()[row]);
      vectors.push_back(objects[i]->getWorldTransform().getOrigin());
      if (body == nullptr) continue;
      vectors.push_back(body->getLinearVelocity());
      vectors.push_back(body->getAngularVelocity());
    }
  }
  std::vector<int> numbers;
  std::vector<btVector3> vectors;
};

btScalar sumOfImpulses(btDispatcher& dispatcher) {
  btScalar sum = 0;
  for (int i = 0; i < dispatcher.getNumManifolds(); ++i) {
    const btPersistentManifold* manifold = dispatcher.getManifoldByIndexInternal(i);
    for (int point = 0; point < manifold->getNumContacts(); ++point)
      sum += manifold->getContactPoint(point).getAppliedImpulse();
  }
  return sum;
}

/// Migrates, and compares the world before and after.
void migrateAndCompare(btDynamicsWorld& world, btBroadphaseInterface& to, bool isExact) {
  const Snapshot before(world);
  const std::map<Pair, btCollisionAlgorithm*> pairsBefore = pairsOf(world);
  btBroadphaseInterface* old = world.getBroadphase();

  EXPECT_EQ(migrateBroadphase(&world, &to), old);

  EXPECT_EQ(world.getBroadphase(), &to);
  EXPECT_EQ(old->getOverlappingPairCache()->getNumOverlappingPairs(), 0);
  const Snapshot after(world);
  EXPECT_EQ(after.numbers, before.numbers);
  EXPECT_TRUE(after.vectors == before.vectors);
  expectPairsRight(world, isExact);
  int kept = 0;
  for (const auto& [pair, algorithm] : pairsOf(world)) {
    EXPECT_EQ(clientOf(pair.first->getBroadphaseHandle()), pair.first);
    const auto was = pairsBefore.find(pair);
    if (was == pairsBefore.end()) continue;
    EXPECT_EQ(algorithm, was->second);
    kept += algorithm != nullptr;
  }
  EXPECT_GT(kept, 20);
}

class Routes : public testing::TestWithParam<std::tuple<Kind, Kind>> {};

// Migrates to a second broad phase, to a third one of the first's kind, and back to the second. In
// the scene `rain` five kinds of shapes fall on a mesh that was added first. So the test would
// detect an algorithm that gets its objects in the wrong order.
TEST_P(Routes, KeepVelocitiesContactsAndPairs) {
  const auto& [from, to] = GetParam();
  Owner second = to.make(), third = from.make();  // outlive the world
  {
    Owner first = from.make();
    World world(std::move(first));
    buildRain(world, {120, 1});
    for (int step = 0; step < 90; ++step) world.step();
    migrateAndCompare(world.bullet(), *second, to.isExact);
    for (int step = 0; step < 40; ++step) world.bullet().stepSimulation(btScalar(1) / 60, 0);
    expectPairsRight(world.bullet(), std::string(to.name).find("Ours") == 0);
    migrateAndCompare(world.bullet(), *third, from.isExact);
    migrateAndCompare(world.bullet(), *second, to.isExact);  // `second` was used before
    for (int step = 0; step < 40; ++step) world.bullet().stepSimulation(btScalar(1) / 60, 0);
    ASSERT_EQ(world.objects(), 121);
    for (int i = 0; i < world.objects(); ++i)
      EXPECT_GT(world.bullet().getCollisionObjectArray()[i]->getWorldTransform().getOrigin().y(),
                -3)
          << "fell through";
  }
}

INSTANTIATE_TEST_SUITE_P(Migrate, Routes,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kKinds)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param).name) + "To" +
                                  std::get<1>(param.param).name;
                         });

INSTANTIATE_TEST_SUITE_P(Migrate, EveryKind, testing::ValuesIn(kKinds),
                         [](const auto& param) { return std::string(param.param.name); });

void buildTower(World& world) {
  world.addStatic(world.make<btBoxShape>(btVector3(50, 1, 50)), at(0, -1, 0));
  auto& box = world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5)));
  for (int i = 0; i < 8; ++i) world.addMoving(box, 1, at(0, btScalar(0.5) + btScalar(i), 0));
}

// A tower rests on the impulses of the previous step. Without these impulses the tower would start
// to settle again.
TEST_P(EveryKind, ContactImpulsesAreKept) {
  Owner other = GetParam().make();
  World moved(std::make_unique<GpuLbvhBroadphase>()), stayed(std::make_unique<GpuLbvhBroadphase>());
  for (World* world : {&moved, &stayed}) {
    buildTower(*world);
    for (int i = 0; i < world->objects(); ++i)
      world->bullet().getCollisionObjectArray()[i]->setActivationState(DISABLE_DEACTIVATION);
    for (int step = 0; step < 200; ++step) world->step();
  }
  const btScalar impulses = sumOfImpulses(*moved.bullet().getDispatcher());
  EXPECT_GT(impulses, 1);
  migrateBroadphase(&moved.bullet(), other.get());
  EXPECT_EQ(sumOfImpulses(*moved.bullet().getDispatcher()), impulses);
  for (int step = 0; step < 60; ++step) {
    for (World* world : {&moved, &stayed}) world->bullet().stepSimulation(btScalar(1) / 60, 0);
    for (int i = 0; i < moved.objects(); ++i) {
      const btVector3 away =
          moved.bullet().getCollisionObjectArray()[i]->getWorldTransform().getOrigin() -
          stayed.bullet().getCollisionObjectArray()[i]->getWorldTransform().getOrigin();
      ASSERT_LT(away.length(), btScalar(1e-3)) << "box " << i << ", step " << step;
    }
  }
}

TEST_P(EveryKind, SleepingBodiesStayAsleep) {
  Owner other = GetParam().make();
  World world(std::make_unique<btDbvtBroadphase>());
  buildTower(world);
  for (int step = 0; step < 300; ++step) world.step();
  const Snapshot before(world.bullet());
  migrateBroadphase(&world.bullet(), other.get());
  for (int step = 0; step < 10; ++step) world.bullet().stepSimulation(btScalar(1) / 60, 0);
  EXPECT_EQ(before.numbers, Snapshot(world.bullet()).numbers);
  EXPECT_FALSE(world.bullet().getCollisionObjectArray()[3]->isActive());
}

}  // namespace
