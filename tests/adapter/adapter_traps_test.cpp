// SPDX-License-Identifier: Zlib
// Tests the traps of docs/contract.md that no other file covers.
#include <memory>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

/// Boxes in a row, each of which touches the next.
std::vector<btBroadphaseProxy*> row(GpuLbvhBroadphase& ours, int n, void* client) {
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < n; ++i)
    proxies.push_back(ours.createProxy(btVector3(btScalar(i), 0, 0),
                                       btVector3(btScalar(i + 1), 1, 1), BOX_SHAPE_PROXYTYPE,
                                       client, 1, -1, nullptr));
  return proxies;
}

struct CacheOfTheUser : btHashedOverlappingPairCache {};

/// A ghost callback that reads no client.
struct Listener : btOverlappingPairCallback {
  btBroadphasePair* addOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*) override {
    return nullptr;
  }
  void* removeOverlappingPair(btBroadphaseProxy*, btBroadphaseProxy*, btDispatcher*) override {
    return nullptr;
  }
  void removeOverlappingPairsContainingProxy(btBroadphaseProxy*, btDispatcher*) override {}
};

// Programs that use the broad phase without a world give it clients of any kind.
TEST(AdapterTraps, ClientsAreNotReadWithoutAGhostCallback) {
  btHashedOverlappingPairCache hashed;
  btSortedOverlappingPairCache sorted;
  CacheOfTheUser unknown;
  Listener listener;
  static_cast<btOverlappingPairCache&>(unknown).setInternalGhostPairCallback(&listener);
  GpuLbvhOptions hasNoGhosts;
  hasNoGhosts.cacheHasGhosts = false;
  GpuLbvhBroadphase own, withHashed(&hashed), withSorted(&sorted),
      withUnknown(hasNoGhosts, &unknown);
  for (GpuLbvhBroadphase* broadphase : {&own, &withHashed, &withSorted, &withUnknown}) {
    std::vector<btBroadphaseProxy*> proxies = row(*broadphase, 20, reinterpret_cast<void*>(16));
    broadphase->calculateOverlappingPairs(nullptr);
    EXPECT_EQ(broadphase->getOverlappingPairCache()->getNumOverlappingPairs(), 19);
    broadphase->setAabb(proxies[5], btVector3(50, 0, 0), btVector3(51, 1, 1), nullptr);
    broadphase->destroyProxy(proxies[9], nullptr);
    broadphase->calculateOverlappingPairs(nullptr);
    EXPECT_EQ(broadphase->getOverlappingPairCache()->getNumOverlappingPairs(), 15);
  }
}

// Bullet's cache masks hashes with its array's capacity. So findPair breaks if other code writes
// to the array or reserves memory for it.
TEST(AdapterTraps, ASuppliedHashedCacheStaysConsistent) {
  btHashedOverlappingPairCache cache;
  GpuLbvhBroadphase ours({}, &cache);
  Random random(71);
  Twins twins({&ours});
  for (int i = 0; i < 300; ++i) twins.create(random);
  for (int step = 0; step < 30; ++step) {
    for (int i = 0; i < 30; ++i) twins.move(random);
    twins.step();
    const std::vector<btBroadphaseProxy*> proxies = twins.proxies(0);
    for (btBroadphaseProxy* a : proxies)
      for (btBroadphaseProxy* b : proxies)
        if (*numberOf(a) < *numberOf(b)) {
          ASSERT_EQ(cache.findPair(a, b) != nullptr, overlap(a, b) && shouldCollide(a, b));
        }
  }
  EXPECT_GT(cache.getNumOverlappingPairs(), 50);
}

// A plane must not make the grid coarser for other boxes, nor enlarge nodes of the tree.
TEST(AdapterTraps, PlanesStayOutOfTheTree) {
  GpuLbvhBroadphase ours;
  int number = 0;
  const btScalar reach = btScalar(BT_LARGE_FLOAT);  // 1e18, or 1e30 with double precision
  const btVector3 corner(reach, reach, reach);
  ours.createProxy(-corner, corner, STATIC_PLANE_PROXYTYPE, &number, 1, -1, nullptr);
  row(ours, 50, &number);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.stats().oversizedBoxes, 1u);
  EXPECT_EQ(ours.stats().pairs, 49u + 50u);
}

// A collision world's destructor destroys its objects' proxies, so the broad phase must outlive the
// world. The dispatcher may be null.
TEST(AdapterTraps, OutlivesItsWorldAndNeedsNoDispatcher) {
  GpuLbvhBroadphase ours;
  btSphereShape ball(1);
  btCollisionObject objects[3];
  {
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btCollisionWorld world(&dispatcher, &ours, &configuration);
    for (btCollisionObject& object : objects) {
      object.setCollisionShape(&ball);
      world.addCollisionObject(&object);
    }
    world.performDiscreteCollisionDetection();
    EXPECT_EQ(dispatcher.getNumManifolds(), 3);
  }
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 0);
  int number = 0;
  std::vector<btBroadphaseProxy*> proxies = row(ours, 5, &number);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 4);
  for (btBroadphaseProxy* proxy : proxies) {
    ours.getOverlappingPairCache()->cleanProxyFromPairs(proxy, nullptr);
    ours.destroyProxy(proxy, nullptr);
  }
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 0);
}

// OpenMW reads this size to learn how many threads may cast rays.
TEST(AdapterTraps, RaysMayBeCastOnAllOfBulletsThreads) {
  const auto broadphase = std::make_unique<GpuLbvhBroadphase>();
  EXPECT_EQ(broadphase->m_rayTestStacks.size(), int{BT_MAX_THREAD_COUNT});
}

}  // namespace
