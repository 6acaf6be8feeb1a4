// SPDX-License-Identifier: Zlib
// Tests what callbacks may do (docs/contract.md): ghost callbacks, contact-ended callbacks, and
// filters in whole worlds.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <btBulletDynamicsCommon.h>

#include "meddlers.h"

namespace {

using namespace twins;

struct MeddlingGhostCallback : btOverlappingPairCallback {
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    if (meddle) meddle(a, b);
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher*) override {
    if (meddle) meddle(a, b);
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
  std::function<void(btBroadphaseProxy*, btBroadphaseProxy*)> meddle;
};

// Bullet's caches call a ghost callback in the middle of a change. Our own cache does not.
TEST(CallbackWorlds, AGhostCallbackMayChangeAnythingWithOurOwnCache) {
  Random random(85);
  GpuLbvhBroadphase broadphase;
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  Objects objects(broadphase);
  MeddlingGhostCallback callback;
  cache.setInternalGhostPairCallback(&callback);
  int calls = 0;
  for (int i = 0; i < 60; ++i) objects.create(randomBox(random, 8, 3));
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    objects.moveAny(10, random, 8, 3);
    callback.meddle = [&](btBroadphaseProxy* a, btBroadphaseProxy*) {
      ++calls;
      const Box box = randomBox(random, 8, 3);
      const std::uint32_t what = random.below(12);
      if (what == 0 && objects.living.size() > 30 && objects.isLiving(a)) objects.destroy(a);
      if (what == 1 && objects.living.size() < 120) objects.create(box);
      if (what == 2) broadphase.setAabb(objects.any(random), box.min, box.max, nullptr);
    };
    broadphase.calculateOverlappingPairs(nullptr);
    objects.expectNoDead();
    if (objects.living.size() > 40) objects.destroy(objects.living.front());
    callback.meddle = nullptr;
    broadphase.calculateOverlappingPairs(nullptr);
    ASSERT_EQ(idPairsOf(cache), objects.bruteForce());
  }
  EXPECT_GT(calls, 1000);
}

// An exception in the middle of a removal corrupts Bullet's caches, but not our own.
TEST(CallbackWorlds, StepAfterAThrowingGhostCallbackHasAllPairs) {
  Random random(87);
  GpuLbvhBroadphase broadphase;
  btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
  Objects objects(broadphase);
  MeddlingGhostCallback callback;
  cache.setInternalGhostPairCallback(&callback);
  int left = 0, broken = 0;
  for (int i = 0; i < 60; ++i) objects.create(randomBox(random, 6, 3));
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    objects.moveAny(20, random, 6, 3);
    left = round;
    callback.meddle = [&left](btBroadphaseProxy*, btBroadphaseProxy*) {
      if (--left < 0) throw 1;
    };
    try {
      broadphase.calculateOverlappingPairs(nullptr);
    } catch (int) {
      ++broken;
    }
    callback.meddle = nullptr;
    broadphase.calculateOverlappingPairs(nullptr);
    ASSERT_EQ(idPairsOf(cache), objects.bruteForce());
  }
  EXPECT_GT(broken, 30);
}

// A filter moves objects after the step has read the boxes. When the step returns, no
// pair of a ghost is missing. The next step removes the pairs that no longer overlap.
TEST(CallbackWorlds, NoGhostPairIsMissingAfterAFilterMovedObjects) {
  for (const bool handedIn : {false, true}) {
    Random random(86);
    btHashedOverlappingPairCache hashed;
    GpuLbvhBroadphase broadphase({}, handedIn ? &hashed : nullptr);
    btOverlappingPairCache& cache = *broadphase.getOverlappingPairCache();
    btGhostPairCallback ghosts;
    cache.setInternalGhostPairCallback(&ghosts);
    Meddler filter;
    cache.setOverlapFilterCallback(&filter);
    Objects objects(broadphase);
    std::vector<std::unique_ptr<btCollisionObject>> clients;
    for (int i = 0; i < 60; ++i) {
      if (i % 4 == 0) clients.push_back(std::make_unique<btGhostObject>());
      if (i % 4 != 0) clients.push_back(std::make_unique<btCollisionObject>());
      objects.create(randomBox(random, 6, 2), clients.back().get());
    }
    int depth = 0;
    for (int round = 0; round < 100; ++round) {
      SCOPED_TRACE(round);
      filter.meddle = [&](btBroadphaseProxy*, btBroadphaseProxy*) {
        if (depth > 2 || random.below(3) != 0) return;
        ++depth;
        objects.moveAny(1, random, 6, 2);
        --depth;
      };
      objects.moveAny(5, random, 6, 2);
      broadphase.calculateOverlappingPairs(nullptr);
      filter.meddle = nullptr;
      const IdPairs found = idPairsOf(cache), expected = objects.bruteForce();
      for (const btBroadphaseProxy* a : objects.living)
        for (const btBroadphaseProxy* b : objects.living) {
          const std::pair<int, int> pair(a->m_uniqueId, b->m_uniqueId);
          const bool isOfGhost = pair.first % 4 == 1 || pair.second % 4 == 1;
          if (pair.first >= pair.second || !isOfGhost) continue;
          ASSERT_GE(found.count(pair), expected.count(pair)) << pair.first << ' ' << pair.second;
        }
      broadphase.calculateOverlappingPairs(nullptr);
      ASSERT_EQ(idPairsOf(cache), objects.bruteForce());
    }
    for (const auto& client : clients) client->setBroadphaseHandle(nullptr);
    while (!objects.living.empty()) objects.destroy(objects.living.back());
  }
}

btCollisionWorld* worldOfTheEndedContacts = nullptr;
std::vector<btCollisionObject*> doomed;

/// A contact-ended callback that removes the last of the doomed objects from the world.
void removesADoomed(btPersistentManifold* const&) {
  if (doomed.empty()) return;
  btCollisionObject* object = doomed.back();
  doomed.pop_back();
  worldOfTheEndedContacts->removeCollisionObject(object);
}

TEST(CallbackWorlds, AContactEndedCallbackMayRemoveObjectsFromTheWorld) {
  GpuLbvhBroadphase broadphase;
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btCollisionWorld world(&dispatcher, &broadphase, &configuration);
  worldOfTheEndedContacts = &world;
  btSphereShape ball(1);
  std::vector<btCollisionObject> balls(40);
  for (std::size_t i = 0; i < balls.size(); ++i) {
    balls[i].setCollisionShape(&ball);
    balls[i].getWorldTransform().setOrigin(btVector3(btScalar(i % 8), btScalar(i / 8), 0));
    world.addCollisionObject(&balls[i]);
  }
  world.performDiscreteCollisionDetection();
  EXPECT_GT(dispatcher.getNumManifolds(), 60);
  for (std::size_t i = 0; i < 20; ++i) doomed.push_back(&balls[2 * i + 1]);
  gContactEndedCallback = removesADoomed;
  for (std::size_t i = 0; i < 40; i += 4)
    balls[i].getWorldTransform().setOrigin(btVector3(btScalar(100 * i), 0, 0));
  world.performDiscreteCollisionDetection();
  world.removeCollisionObject(&balls[2]);
  gContactEndedCallback = nullptr;
  EXPECT_LT(doomed.size(), 10u) << "the callback was called";
  for (btCollisionObject* object : doomed) world.removeCollisionObject(object);
  doomed.clear();
  const btBroadphasePairArray& pairs =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i) {
    EXPECT_NE(pairs[i].m_pProxy0->m_clientObject, nullptr) << i;
    EXPECT_NE(pairs[i].m_pProxy1->m_clientObject, nullptr) << i;
  }
  world.performDiscreteCollisionDetection();
  for (std::size_t i = 0; i < 40; i += 2)
    if (i != 2) world.removeCollisionObject(&balls[i]);
  EXPECT_EQ(dispatcher.getNumManifolds(), 0);
}

/// Removes the second object of each of the first five pairs from the world, unless it is static.
struct RemovesFromAWorld : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy* b) const override {
    auto* object = static_cast<btCollisionObject*>(b->m_clientObject);
    if (--left < 0 || object->isStaticObject()) return true;
    world->removeCollisionObject(object);
    return false;
  }
  btCollisionWorld* world = nullptr;
  mutable int left = 5;
};

TEST(CallbackWorlds, AFilterMayRemoveObjectsFromTheWorldInAnyBroadphase) {
  GpuLbvhBroadphase ours;
  btDbvtBroadphase dbvt;
  for (btBroadphaseInterface* broadphase :
       {static_cast<btBroadphaseInterface*>(&dbvt), static_cast<btBroadphaseInterface*>(&ours)}) {
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btSequentialImpulseConstraintSolver solver;
    btDiscreteDynamicsWorld world(&dispatcher, broadphase, &solver, &configuration);
    RemovesFromAWorld filter;
    filter.world = &world;
    btBoxShape box(btVector3(1, 1, 1));
    std::vector<std::unique_ptr<btRigidBody>> bodies;
    for (int i = 0; i < 30; ++i) {
      bodies.push_back(std::make_unique<btRigidBody>(1, nullptr, &box));
      btTransform place(btQuaternion::getIdentity(), btVector3(btScalar(1.5 * i), 0, 0));
      bodies.back()->setWorldTransform(place);
      world.addRigidBody(bodies.back().get());
    }
    world.getPairCache()->setOverlapFilterCallback(&filter);
    for (int step = 0; step < 10; ++step) world.stepSimulation(btScalar(1) / 60, 0);
    EXPECT_LT(filter.left, 0);
    EXPECT_LT(world.getNumCollisionObjects(), 30);
    for (const auto& body : bodies)
      if (body->getBroadphaseHandle() != nullptr) world.removeRigidBody(body.get());
  }
}

}  // namespace
