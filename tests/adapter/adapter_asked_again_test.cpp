// SPDX-License-Identifier: Zlib
// Tests filter callbacks whose answer changes from no to yes while two boxes overlap, as in real
// programs. Also tests which pair caches remember the refusal.
#include <btBulletDynamicsCommon.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "GpuLbvhBroadphase.h"

namespace {

std::vector<std::unique_ptr<btOverlappingPairCache>> caches() {
  std::vector<std::unique_ptr<btOverlappingPairCache>> all(1);  // null: our own cache
  all.push_back(std::make_unique<btHashedOverlappingPairCache>());
  all.push_back(std::make_unique<btSortedOverlappingPairCache>());
  return all;
}

struct Switch : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    ++questions;
    return isOn;
  }
  bool isOn = false;
  mutable int questions = 0;
};

// The collision manager of a robot planner may enable an object while it overlaps another one. Some
// managers then clean the object's pairs, others do not.
TEST(AskedAgain, AnEnabledObjectGetsItsPairsOnceItMoves) {
  for (const auto& cache : caches())
    for (const bool cleans : {false, true}) {
      GpuLbvhBroadphase broadphase({}, cache.get());
      Switch enabled;
      btOverlappingPairCache& pairs = *broadphase.getOverlappingPairCache();
      pairs.setOverlapFilterCallback(&enabled);
      const btVector3 low(0, 0, 0), high(1, 1, 1), by(btScalar(0.1), 0, 0);
      btBroadphaseProxy* link = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
      btBroadphaseProxy* box = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
      broadphase.calculateOverlappingPairs(nullptr);
      EXPECT_EQ(pairs.getNumOverlappingPairs(), 0);
      enabled.isOn = true;
      if (cleans) pairs.cleanProxyFromPairs(link, nullptr);
      broadphase.setAabb(link, low + by, high + by, nullptr);
      broadphase.calculateOverlappingPairs(nullptr);
      EXPECT_EQ(pairs.getNumOverlappingPairs(), 1);
      for (btBroadphaseProxy* proxy : {link, box}) broadphase.destroyProxy(proxy, nullptr);
    }
}

TEST(AskedAgain, CleaningAProxyInOurOwnCacheIsEnough) {
  for (const bool removes : {false, true}) {
    GpuLbvhBroadphase broadphase;
    Switch filter;
    btOverlappingPairCache& pairs = *broadphase.getOverlappingPairCache();
    pairs.setOverlapFilterCallback(&filter);
    const btVector3 low(0, 0, 0), high(1, 1, 1);
    std::vector<btBroadphaseProxy*> proxies;
    for (int i = 0; i < 4; ++i)
      proxies.push_back(broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr));
    broadphase.calculateOverlappingPairs(nullptr);
    filter.isOn = true;
    filter.questions = 0;
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(filter.questions, 0);
    if (removes)
      pairs.removeOverlappingPairsContainingProxy(proxies[2], nullptr);
    else
      pairs.cleanProxyFromPairs(proxies[2], nullptr);
    for (int step = 0; step < 2; ++step) {
      broadphase.calculateOverlappingPairs(nullptr);
      EXPECT_EQ(broadphase.stats().totalMs, 0) << "nothing to find";
      EXPECT_EQ(filter.questions, 3);
      EXPECT_EQ(pairs.getNumOverlappingPairs(), 3);
    }
  }
}

/// Bodies collide with the platform only while their feet are above or just below its surface.
struct OneWayPlatform : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    const auto* first = static_cast<const btCollisionObject*>(a->m_clientObject);
    const auto* second = static_cast<const btCollisionObject*>(b->m_clientObject);
    const auto* player = first->isStaticObject() ? second : first;
    return player->getWorldTransform().getOrigin().y() - btScalar(0.5) > btScalar(0.4);
  }
};

// The player jumps through the platform from below. At the top of the jump his feet are a little
// below the platform's surface.
TEST(AskedAgain, APlayerLandsOnAOneWayPlatform) {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btSequentialImpulseConstraintSolver solver;
  GpuLbvhBroadphase broadphase;
  btDiscreteDynamicsWorld world(&dispatcher, &broadphase, &solver, &configuration);
  OneWayPlatform filter;
  broadphase.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  world.setGravity(btVector3(0, -10, 0));
  btBoxShape floor(btVector3(3, btScalar(0.5), 3)), cube(btVector3(1, 1, 1) / 2);
  btDefaultMotionState motion(
      btTransform(btQuaternion::getIdentity(), btVector3(0, btScalar(-1.5), 0)));
  btRigidBody platform(0, nullptr, &floor), player(1, &motion, &cube, btVector3(1, 1, 1));
  player.setLinearVelocity(btVector3(0, btScalar(7.1), 0));
  for (btRigidBody* body : {&platform, &player}) world.addRigidBody(body);
  btScalar highest = -2;
  for (int step = 0; step < 240; ++step) {
    world.stepSimulation(btScalar(1) / 60, 0);
    highest = std::max(highest, player.getWorldTransform().getOrigin().y());
  }
  EXPECT_GT(highest, btScalar(0.9)) << "the player comes through";
  EXPECT_LT(highest, btScalar(1.05)) << "without leaving the platform's box";
  EXPECT_NEAR(player.getWorldTransform().getOrigin().y(), 1.0, 0.05);
  for (btRigidBody* body : {&platform, &player}) world.removeRigidBody(body);
}

/// A cache that refuses pairs by itself, without a filter callback.
template <class Cache>
struct OwnMind : Cache {
  bool needsBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
    ++questions;
    return isOn;
  }
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) override {
    return needsBroadphaseCollision(a, b) ? Cache::addOverlappingPair(a, b) : nullptr;
  }
  bool isOn = false;
  mutable int questions = 0;
};

template <class Cache>
int pairsOnceTheyMove(Cache& cache) {
  GpuLbvhBroadphase broadphase({}, &cache);
  const btVector3 low(0, 0, 0), high(1, 1, 1);
  btBroadphaseProxy* a = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
  btBroadphaseProxy* b = broadphase.createProxy(low, high, 0, nullptr, 1, -1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(cache.getNumOverlappingPairs(), 0);
  cache.isOn = true;
  cache.questions = 0;
  broadphase.setAabb(a, low, high * 2, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  const int pairs = cache.getNumOverlappingPairs();
  for (btBroadphaseProxy* proxy : {a, b}) broadphase.destroyProxy(proxy, nullptr);
  return pairs;
}

TEST(AskedAgain, RefusalsOfASuppliedCacheAreRemembered) {
  OwnMind<btHashedOverlappingPairCache> hashed;
  OwnMind<btSortedOverlappingPairCache> sorted;
  OwnMind<btNullPairCache> none;
  EXPECT_EQ(pairsOnceTheyMove(hashed), 1);
  EXPECT_EQ(pairsOnceTheyMove(sorted), 1);
  none.isOn = true;
  EXPECT_EQ(pairsOnceTheyMove(none), 0);
  EXPECT_EQ(none.questions, 1) << "a cache of this class does not say why it adds no pair";
}

// A box moves, and the finder's step fails. The next step that succeeds calls the filter for the
// box's pairs.
TEST(AskedAgain, ABoxThatMovedBeforeAFailedStepIsAskedAboutLater) {
  GpuLbvhOptions options;
  options.maxPairs = 5;
  GpuLbvhBroadphase broadphase(options);
  Switch filter;
  broadphase.getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  const btVector3 low(0, 0, 0), high(1, 1, 1);
  const auto create = [&](const btVector3& at) {
    return broadphase.createProxy(low + at, high + at, 0, nullptr, 1, -1, nullptr);
  };
  btBroadphaseProxy* one = create({0, 0, 0});
  create({0, 0, 0});
  broadphase.calculateOverlappingPairs(nullptr);
  filter.isOn = true;
  broadphase.setAabb(one, low, high * 2, nullptr);
  std::vector<btBroadphaseProxy*> tooMany;
  for (int i = 0; i < 5; ++i) tooMany.push_back(create({9, 9, 9}));
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_STRNE(broadphase.error(), "");
  for (btBroadphaseProxy* proxy : tooMany) broadphase.destroyProxy(proxy, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_STREQ(broadphase.error(), "");
  EXPECT_EQ(broadphase.getOverlappingPairCache()->getNumOverlappingPairs(), 1);
}

}  // namespace
