// SPDX-License-Identifier: Zlib
// Tests worlds of more than 4,096 objects, in which a step does not read the filters of all resting
// objects.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>

#include <algorithm>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

/// A world in which boxes i and i ^ 1 overlap. These pairs of boxes are far from each other.
class LargeWorld {
 public:
  explicit LargeWorld(int count, const GpuLbvhOptions& options = {})
      : broadphase(options), m_numbers(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      m_numbers[static_cast<std::size_t>(i)] = i;
      const btVector3 at = place(i);
      proxies.push_back(broadphase.createProxy(
          at, at + btVector3(1, 1, 1), 0, &m_numbers[static_cast<std::size_t>(i)], 1, -1, nullptr));
    }
    step();
    EXPECT_EQ(pairs(), count / 2);
  }

  static btVector3 place(int i) {
    return {btScalar(i / 2 % 100 * 3), btScalar(i / 200 * 3), btScalar(i % 2) / 2};
  }
  void moveTo(std::size_t i, const btVector3& at) {
    broadphase.setAabb(proxies[i], at, at + btVector3(1, 1, 1), nullptr);
  }
  void setMask(std::size_t i, int mask) { proxies[i]->m_collisionFilterMask = mask; }
  int step() {
    broadphase.calculateOverlappingPairs(nullptr);
    return pairs();
  }
  int pairs() { return broadphase.getOverlappingPairCache()->getNumOverlappingPairs(); }

  GpuLbvhBroadphase broadphase;
  std::vector<btBroadphaseProxy*> proxies;

 private:
  std::vector<int> m_numbers;
};

TEST(AdapterLargeWorld, FiltersOfRestingObjectsAreReadInTurn) {
  LargeWorld world(10000);
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t i : {0u, 1500u, 4096u, 7777u, 9999u}) world.setMask(i, 0);
    EXPECT_GT(world.step(), 4995) << "a step reads only some of them";
    for (int k = 1; k < 10; ++k) world.step();
    EXPECT_EQ(world.pairs(), 4995);
    for (const std::size_t i : {0u, 1500u, 4096u, 7777u, 9999u}) world.setMask(i, -1);
    for (int k = 0; k < 10; ++k) world.step();
    EXPECT_EQ(world.pairs(), 5000);
  }
}

TEST(AdapterLargeWorld, ASmallWorldReadsAllFilters) {
  LargeWorld world(4096);
  for (const std::size_t i : {0u, 1500u, 2222u, 4095u}) {
    world.setMask(i, 0);
    EXPECT_EQ(world.step(), 2047);
    world.setMask(i, -1);
    EXPECT_EQ(world.step(), 2048);
  }
}

TEST(AdapterLargeWorld, AnOptionReadsAllFilters) {
  GpuLbvhOptions options;
  options.readsAllFilters = true;
  LargeWorld world(10000, options);
  for (const std::size_t i : {0u, 5000u, 9999u}) {
    world.setMask(i, 0);
    EXPECT_EQ(world.step(), 4999);
    world.setMask(i, -1);
    EXPECT_EQ(world.step(), 5000);
  }
}

TEST(AdapterLargeWorld, FiltersAreReadAtOnceIfTheObjectMovesOrTheProgramAsks) {
  LargeWorld world(10000);
  int expected = 5000;
  const auto change = [&](std::size_t i) {
    world.setMask(i, 0);
    --expected;
  };
  for (std::size_t i = 5000; i < 5100; i += 10) {
    change(i);
    world.moveTo(i, world.proxies[i]->m_aabbMin + btVector3(0, btScalar(0.01), 0));
    EXPECT_EQ(world.step(), expected);
    change(i + 2);
    world.broadphase.filterChanged(world.proxies[i + 2]);
    EXPECT_EQ(world.step(), expected);
    change(i + 4);
    world.broadphase.refilter();
    EXPECT_EQ(world.step(), expected);
    world.setMask(i + 4, -1);
    ++expected;
    world.broadphase.refilter();
    EXPECT_EQ(world.step(), expected);
    change(i + 6);
    world.broadphase.getOverlappingPairCache()->cleanProxyFromPairs(world.proxies[i + 6], nullptr);
    EXPECT_EQ(world.step(), expected);
  }
}

TEST(AdapterLargeWorld, ANewObjectInAnOldSlotHasItsOwnFilter) {
  LargeWorld world(10000);
  for (std::size_t i = 6000; i < 6010; i += 2) {
    const btVector3 at = world.proxies[i]->m_aabbMin;
    void* const number = world.proxies[i]->m_clientObject;
    world.broadphase.destroyProxy(world.proxies[i], nullptr);
    world.proxies[i] =
        world.broadphase.createProxy(at, at + btVector3(1, 1, 1), 0, number, 1, 0, nullptr);
    world.proxies[i]->m_collisionFilterMask = -1;  // before any step
    EXPECT_EQ(world.step(), 5000);
  }
}

// The step finds the pair, because it uses the mask that was read last. The cache refuses the pair
// because of the current mask. The old mask is restored before a step reads the object's filter in
// turn.
TEST(AdapterLargeWorld, AMaskThatChangesForOneStepLosesNoPair) {
  LargeWorld world(10000);
  for (std::size_t i = 5000; i < 5020; i += 2) {
    world.moveTo(i + 1, btVector3(0, 0, btScalar(100 + i)));
    EXPECT_EQ(world.step(), 4999);
    world.setMask(i, 0);
    world.moveTo(i + 1, LargeWorld::place(static_cast<int>(i + 1)));
    EXPECT_EQ(world.step(), 4999);
    world.setMask(i, -1);
    for (int k = 0; k < 11; ++k) world.step();
    EXPECT_EQ(world.pairs(), 5000);
  }
}

TEST(AdapterLargeWorld, FiltersThatACallbackReplacedAreReadAtOnce) {
  struct All : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      return true;
    }
  } all;
  LargeWorld world(10000);
  btOverlappingPairCache* const cache = world.broadphase.getOverlappingPairCache();
  world.setMask(8000, 0);
  world.broadphase.refilter();
  EXPECT_EQ(world.step(), 4999);
  cache->setOverlapFilterCallback(&all);
  EXPECT_EQ(world.step(), 5000);
  world.setMask(7000, 0);
  world.setMask(8000, -1);
  cache->setOverlapFilterCallback(nullptr);
  EXPECT_EQ(world.step(), 4999);
  world.setMask(7000, -1);
  world.broadphase.refilter();
  EXPECT_EQ(world.step(), 5000);
}

// The pair of a ghost is added at once, according to the current mask. The next step must
// keep it.
TEST(AdapterLargeWorld, GhostsPairWithARestingObjectByItsCurrentMask) {
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  std::vector<btCollisionObject> objects(9000);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const btVector3 at = 2 * LargeWorld::place(static_cast<int>(2 * i));
    objects[i].setBroadphaseHandle(
        broadphase.createProxy(at, at + btVector3(1, 1, 1), 0, &objects[i], 1, 0, nullptr));
  }
  btGhostObject ghost;
  const btVector3 away(0, 0, 1000);
  btBroadphaseProxy* const proxy =
      broadphase.createProxy(away, away + btVector3(1, 1, 1), 0, &ghost, 1, -1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  for (std::size_t i = 7000; i < 7010; ++i) {
    const btBroadphaseProxy* const met = objects[i].getBroadphaseHandle();
    objects[i].getBroadphaseHandle()->m_collisionFilterMask = -1;
    broadphase.setAabb(proxy, met->m_aabbMin, met->m_aabbMax, nullptr);
    ASSERT_EQ(ghost.getNumOverlappingObjects(), 1);
    EXPECT_EQ(ghost.getOverlappingObject(0), &objects[i]);
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(ghost.getNumOverlappingObjects(), 1);
    broadphase.setAabb(proxy, away, away + btVector3(1, 1, 1), nullptr);
    broadphase.calculateOverlappingPairs(nullptr);
    EXPECT_EQ(ghost.getNumOverlappingObjects(), 0);
  }
  broadphase.destroyProxy(proxy, nullptr);
  for (btCollisionObject& object : objects)
    broadphase.destroyProxy(object.getBroadphaseHandle(), nullptr);
}

// The plane cuts the world in two, so each step decides by the plane's equation which boxes form
// pairs with it.
TEST(AdapterLargeWorld, APlanesPairsFollowMasksThatAreReadInTurn) {
  constexpr int kCount = 10000, kBoth = kCount / 2 + kCount / 2;
  LargeWorld world(kCount);
  const btVector3 far(1000, 1000, 1000);
  btBroadphaseProxy* const plane =
      world.broadphase.createProxy(-far, far, 0, world.proxies[0]->m_clientObject, 1, -1, nullptr);
  ASSERT_TRUE(world.broadphase.setPlane(plane, btVector3(0, 0, 1), btScalar(0.25)));
  EXPECT_EQ(world.step(), kBoth) << "every second box reaches below the plane";
  for (const std::size_t i : {0u, 1500u, 4096u, 7776u, 9998u}) world.setMask(i, 0);
  for (int k = 0; k < 10; ++k) world.step();
  EXPECT_EQ(world.pairs(), kBoth - 10) << "each has lost its partner and the plane";
  for (const std::size_t i : {0u, 1500u, 4096u, 7776u, 9998u}) world.setMask(i, -1);
  for (int k = 0; k < 10; ++k) world.step();
  EXPECT_EQ(world.pairs(), kBoth);
  world.moveTo(5000, world.proxies[5000]->m_aabbMin + btVector3(0, 0, btScalar(0.5)));
  EXPECT_EQ(world.step(), kBoth - 1) << "the box is above the plane now";
  plane->m_collisionFilterMask = 0;
  for (int k = 0; k < 10; ++k) world.step();
  EXPECT_EQ(world.pairs(), kCount / 2);
  world.broadphase.destroyProxy(plane, nullptr);
}

// A pair that a callback refused is offered again when one of its objects moves. After refilter()
// all such pairs are offered again.
TEST(AdapterLargeWorld, RefusedPairsOfRestingObjectsWaitForRefilter) {
  struct Gate : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy*, btBroadphaseProxy*) const override {
      ++questions;
      return isOpen;
    }
    bool isOpen = false;
    mutable int questions = 0;
  } gate;
  LargeWorld world(10000);
  world.broadphase.getOverlappingPairCache()->setOverlapFilterCallback(&gate);
  EXPECT_EQ(world.step(), 0);
  gate.isOpen = true;
  gate.questions = 0;
  for (int k = 0; k < 12; ++k) EXPECT_EQ(world.step(), 0);
  EXPECT_EQ(gate.questions, 0) << "nothing has moved";
  for (int moved = 1; moved <= 5; ++moved) {
    const auto i = static_cast<std::size_t>(1900 * moved);
    world.moveTo(i, world.proxies[i]->m_aabbMin + btVector3(0, btScalar(0.01), 0));
    EXPECT_EQ(world.step(), moved);
    EXPECT_EQ(gate.questions, moved);
  }
  world.broadphase.refilter();
  EXPECT_EQ(world.step(), 5000);
  world.broadphase.getOverlappingPairCache()->setOverlapFilterCallback(nullptr);
}

// One broad phase reads all filters, the other one reads them in turn. Random objects move, are
// replaced, and get other filters. After ten further steps without changes, both have the same
// pairs.
TEST(AdapterLargeWorld, EndsWithThePairsOfABroadPhaseThatReadsAllFilters) {
  GpuLbvhOptions options;
  options.readsAllFilters = true;
  LargeWorld worlds[] = {LargeWorld(9000), LargeWorld(9000, options)};
  Random random(71);
  const auto any = [&] { return std::size_t{random.below(9000)}; };
  std::size_t changes = 0;
  for (int round = 0; round < 12; ++round) {
    for (int step = 0; step < 6; ++step) {
      for (int k = 0; k < 20; ++k) {
        const std::size_t i = any(), j = any(), l = any();
        const int mask = random.below(2) == 0 ? -1 : static_cast<int>(random.below(2));
        const btVector3 at = LargeWorld::place(static_cast<int>(any()));
        for (LargeWorld& world : worlds) {
          world.setMask(i, mask);
          world.moveTo(j, at);
          if (k != 0) continue;
          void* const number = world.proxies[l]->m_clientObject;
          world.broadphase.destroyProxy(world.proxies[l], nullptr);
          world.proxies[l] =
              world.broadphase.createProxy(at, at + btVector3(1, 1, 1), 0, number, 1, -1, nullptr);
        }
      }
      for (LargeWorld& world : worlds) world.step();
    }
    changes += pairsOf(worlds[0].broadphase) != pairsOf(worlds[1].broadphase);
    for (int step = 0; step < 10; ++step)
      for (LargeWorld& world : worlds) world.step();
    ASSERT_EQ(pairsOf(worlds[0].broadphase), pairsOf(worlds[1].broadphase)) << round;
  }
  EXPECT_GT(changes, 3u) << "too few filters were read in turn";
}

}  // namespace
