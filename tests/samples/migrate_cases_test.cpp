// SPDX-License-Identifier: Zlib
// Tests migrateBroadphase with filters, ghosts, shared caches, proxies without an object, and soft
// bodies.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <BulletSoftBody/btSoftBodyRigidBodyCollisionConfiguration.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "migrateBroadphase.h"
#include "migrate_kinds.h"
#include "scenes/scenes.h"

namespace {

using namespace migrate_kinds;

struct EvenOnly : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    for (const btBroadphaseProxy* proxy : {a, b}) {
      const btBroadphaseProxy* handle = clientOf(proxy)->getBroadphaseHandle();
      EXPECT_TRUE(handle == proxy || handle == nullptr) << "a proxy of the other broad phase";
    }
    return (clientOf(a)->getUserIndex() + clientOf(b)->getUserIndex()) % 2 == 0;
  }
};

TEST_P(EveryKind, MovesTheFilterCallback) {
  Owner first = std::make_unique<GpuLbvhBroadphase>(), second = GetParam().make();
  EvenOnly filter;
  Spheres spheres(*first);
  first->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  spheres.world.performDiscreteCollisionDetection();
  migrateBroadphase(&spheres.world, second.get());
  EXPECT_EQ(second->getOverlappingPairCache()->getOverlapFilterCallback(), &filter);
  EXPECT_EQ(first->getOverlappingPairCache()->getOverlapFilterCallback(), nullptr);
  expectPairsRight(spheres.world, GetParam().isExact);

  // Only an existing callback is moved. If the old cache has none, the new cache keeps its own
  // callback.
  second->getOverlappingPairCache()->setOverlapFilterCallback(nullptr);
  first->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  migrateBroadphase(&spheres.world, first.get());
  EXPECT_EQ(first->getOverlappingPairCache()->getOverlapFilterCallback(), &filter);
  expectPairsRight(spheres.world, true);
}

TEST(Migrate, TheNewBroadphaseChecksRefusedPairsAgain) {
  struct Switch : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      return isOn;
    }
    bool isOn = false;
  } filter;
  GpuLbvhBroadphase first, second;
  Spheres spheres(first);
  btCollisionWorld& world = spheres.world;
  first.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  for (GpuLbvhBroadphase* next : {&second, &first}) {
    filter.isOn = false;
    world.performDiscreteCollisionDetection();
    migrateBroadphase(&world, next);
    const btOverlappingPairCache& pairs = *next->getOverlappingPairCache();
    EXPECT_EQ(pairs.getNumOverlappingPairs(), 0);
    filter.isOn = true;
    world.performDiscreteCollisionDetection();
    EXPECT_EQ(pairs.getNumOverlappingPairs(), 0) << "nothing has moved";
    for (int i = 0; i < world.getNumCollisionObjects(); ++i)
      world.getCollisionObjectArray()[i]->getWorldTransform().getOrigin() += btVector3(1, 0, 0) / 8;
    world.performDiscreteCollisionDetection();
    expectPairsRight(world, true);
  }
}

void expectGhostRight(btCollisionWorld& world, btGhostObject& ghost) {
  std::set<const btCollisionObject*> seen, expected;
  for (int i = 0; i < ghost.getNumOverlappingObjects(); ++i)
    EXPECT_TRUE(seen.insert(ghost.getOverlappingObject(i)).second);
  for (const Pair& pair : bruteForce(world)) {
    if (pair.first == &ghost) expected.insert(pair.second);
    if (pair.second == &ghost) expected.insert(pair.first);
  }
  EXPECT_GT(expected.size(), 3u);
  EXPECT_EQ(seen, expected);
}

// Also migrates from a sorted cache, which does not report removed pairs to its ghost callback.
TEST_P(EveryKind, GhostsSeeWhatTheyOverlap) {
  Owner first = GetParam().make(), second = std::make_unique<GpuLbvhBroadphase>(),
        third = std::make_unique<btDbvtBroadphase>();
  btGhostPairCallback callback;
  first->getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btGhostObject plain;
  btPairCachingGhostObject caching;
  Spheres spheres(*first);
  spheres.add(plain, btVector3(btScalar(1.5), btScalar(1.5), btScalar(1.5)), 60);
  spheres.add(caching, btVector3(btScalar(2.5), btScalar(1.5), btScalar(1.5)), 61);
  spheres.world.performDiscreteCollisionDetection();
  btBroadphaseInterface* const route[] = {second.get(), third.get(), second.get()};
  for (btBroadphaseInterface* next : route) {
    migrateBroadphase(&spheres.world, next, &callback);
    expectGhostRight(spheres.world, plain);
    expectGhostRight(spheres.world, caching);
    btHashedOverlappingPairCache& own = *caching.getOverlappingPairCache();
    EXPECT_EQ(own.getNumOverlappingPairs(), caching.getNumOverlappingObjects());
    for (int i = 0; i < own.getNumOverlappingPairs(); ++i) {
      const btBroadphasePair& pair = own.getOverlappingPairArray()[i];
      for (const btBroadphaseProxy* proxy : {pair.m_pProxy0, pair.m_pProxy1})
        EXPECT_EQ(clientOf(proxy)->getBroadphaseHandle(), proxy) << "an old proxy";
    }
    spheres.world.performDiscreteCollisionDetection();
  }
}

TEST(Migrate, TwoBroadphasesMayShareACache) {
  btHashedOverlappingPairCache cache;
  btGhostPairCallback callback;
  EvenOnly filter;
  btDbvtBroadphase first(&cache);
  GpuLbvhBroadphase second({}, &cache);
  cache.setOverlapFilterCallback(&filter);
  first.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btGhostObject ghost;
  Spheres spheres(first);
  spheres.add(ghost, btVector3(btScalar(1.5), btScalar(1.5), btScalar(1.5)), 60);
  for (btBroadphaseInterface* next : {static_cast<btBroadphaseInterface*>(&second),
                                      static_cast<btBroadphaseInterface*>(&first)}) {
    spheres.world.performDiscreteCollisionDetection();
    migrateBroadphase(&spheres.world, next);
    EXPECT_EQ(cache.getOverlapFilterCallback(), &filter);
    expectPairsRight(spheres.world, true);
    expectGhostRight(spheres.world, ghost);
  }
}

TEST(Migrate, ToTheSameBroadphaseKeepsEveryProxy) {
  GpuLbvhBroadphase only;
  Spheres spheres(only);
  spheres.world.performDiscreteCollisionDetection();
  const btCollisionObject& object = *spheres.world.getCollisionObjectArray()[7];
  const int id = object.getBroadphaseHandle()->m_uniqueId;
  EXPECT_EQ(migrateBroadphase(&spheres.world, &only), &only);
  EXPECT_EQ(object.getBroadphaseHandle()->m_uniqueId, id) << "not a new proxy";
}

TEST(Migrate, ProxiesWithoutAnObjectStayInThePreviousBroadphase) {
  GpuLbvhBroadphase first;
  btDbvtBroadphase second;
  Spheres spheres(first);
  btBroadphaseProxy* own[2];
  for (btBroadphaseProxy*& proxy : own)
    proxy = first.createProxy(btVector3(90, 90, 90), btVector3(91, 91, 91), BOX_SHAPE_PROXYTYPE,
                              &spheres, 1, -1, nullptr);
  first.calculateOverlappingPairs(nullptr);
  migrateBroadphase(&spheres.world, &second);
  EXPECT_EQ(first.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
  first.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(first.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
  EXPECT_NE(first.getOverlappingPairCache()->findPair(own[0], own[1]), nullptr);
}

/// Number of manifolds of all pairs. The world also has manifolds for predicted contacts.
int manifoldsOfPairs(btCollisionWorld& world) {
  btManifoldArray manifolds;
  for (const auto& pair : pairsOf(world))
    if (pair.second != nullptr) pair.second->getAllContactManifolds(manifolds);
  return manifolds.size();
}

// A broad phase that was used before may assign ids to the same objects in another order. An
// algorithm for (mesh, ball) must not get (ball, mesh).
TEST(Migrate, DropsAlgorithmsOfPairsWhoseProxiesChangeOrder) {
  btSimpleBroadphase turned(500);
  {
    int number = 0;
    std::vector<btBroadphaseProxy*> past;
    for (int i = 0; i < 200; ++i)
      past.push_back(turned.createProxy(btVector3(0, 0, 0), btVector3(1, 1, 1), BOX_SHAPE_PROXYTYPE,
                                        &number, 1, -1, nullptr));
    for (btBroadphaseProxy* proxy : past) turned.destroyProxy(proxy, nullptr);
  }
  World world(std::make_unique<GpuLbvhBroadphase>());
  buildRain(world, {80, 1});
  for (int step = 0; step < 90; ++step) world.step();
  const auto& objects = world.bullet().getCollisionObjectArray();
  const int manifolds = manifoldsOfPairs(world.bullet()),
            others = world.bullet().getDispatcher()->getNumManifolds() - manifolds;
  ASSERT_GT(manifolds, 20);
  migrateBroadphase(&world.bullet(), &turned);
  ASSERT_GT(objects[0]->getBroadphaseHandle()->m_uniqueId,
            objects[1]->getBroadphaseHandle()->m_uniqueId);
  EXPECT_EQ(manifoldsOfPairs(world.bullet()), 0);
  EXPECT_EQ(world.bullet().getDispatcher()->getNumManifolds(), others) << "none leaks";
  for (int step = 0; step < 60; ++step) world.bullet().stepSimulation(btScalar(1) / 60, 0);
  for (int i = 0; i < world.objects(); ++i)
    EXPECT_GT(objects[i]->getWorldTransform().getOrigin().y(), -3) << "fell through";
}

// A soft body sets its box through its world info, at any time.
TEST(Migrate, SoftBodiesUseTheNewBroadphase) {
  auto first = std::make_unique<btDbvtBroadphase>();
  GpuLbvhBroadphase second;
  btSoftBodyRigidBodyCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btSequentialImpulseConstraintSolver solver;
  btSoftRigidDynamicsWorld world(&dispatcher, first.get(), &solver, &configuration);
  btSoftBodyWorldInfo own;
  own.m_broadphase = first.get();
  btSoftBody* bodies[2];
  for (int i = 0; i < 2; ++i) {
    bodies[i] = btSoftBodyHelpers::CreateEllipsoid(own, btVector3(0, btScalar(3 * i), 0),
                                                   btVector3(1, 1, 1), 32);
    world.addSoftBody(bodies[i]);
  }
  for (int step = 0; step < 10; ++step) world.stepSimulation(btScalar(1) / 60, 0);
  migrateBroadphase(&world, &second);
  first.reset();
  EXPECT_EQ(world.getWorldInfo().m_broadphase, &second);
  EXPECT_EQ(own.m_broadphase, &second);
  for (int step = 0; step < 20; ++step) world.stepSimulation(btScalar(1) / 60, 0);
  expectPairsRight(world, true);
  bodies[0]->translate(btVector3(0, 3, 0));  // calls updateBounds
  btVector3 low, high;
  bodies[0]->getAabb(low, high);
  EXPECT_EQ(low.y(), bodies[0]->getBroadphaseHandle()->m_aabbMin.y());
  for (btSoftBody* body : bodies) {
    world.removeSoftBody(body);
    delete body;
  }
}

// In a large world, each step reads the masks of only some resting objects. A migration reads all
// masks.
TEST(Migrate, ALargeWorldReadsTheCurrentFilters) {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btSphereShape shape(1);
  GpuLbvhBroadphase first, second;
  btCollisionWorld world(&dispatcher, &first, &configuration);
  std::vector<btCollisionObject> objects(10000);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    objects[i].setCollisionShape(&shape);
    const auto pair = static_cast<int>(i / 2);
    objects[i].getWorldTransform().setOrigin(
        btVector3(btScalar(5 * (pair % 100)), btScalar(5 * (pair / 100)), btScalar(i % 2)));
    world.addCollisionObject(&objects[i], 1, -1);
  }
  const auto pairs = [&] { return world.getPairCache()->getNumOverlappingPairs(); };
  first.calculateOverlappingPairs(&dispatcher);
  EXPECT_EQ(pairs(), 5000);
  const auto setMasks = [&](int mask) {
    for (std::size_t i = 3000; i < 9000; i += 1000)
      objects[i].getBroadphaseHandle()->m_collisionFilterMask = mask;
  };
  setMasks(0);
  migrateBroadphase(&world, &second);
  EXPECT_EQ(pairs(), 4994);
  setMasks(-1);
  for (int k = 0; k < 10; ++k) second.calculateOverlappingPairs(&dispatcher);
  EXPECT_EQ(pairs(), 5000);
  setMasks(0);
  migrateBroadphase(&world, &first);
  EXPECT_EQ(pairs(), 4994);
  for (btCollisionObject& object : objects) world.removeCollisionObject(&object);
}

}  // namespace
