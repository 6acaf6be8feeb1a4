// SPDX-License-Identifier: Zlib
// The traps of docs/contract.md that no other test covers.
#include <memory>

#include "GpuLbvhBroadphase.h"
#include "twins.h"

namespace {

using namespace twins;

/// Boxes side by side, each overlapping the next.
std::vector<btBroadphaseProxy*> row(GpuLbvhBroadphase& ours, int n, void* client) {
  std::vector<btBroadphaseProxy*> proxies;
  for (int i = 0; i < n; ++i)
    proxies.push_back(ours.createProxy(btVector3(btScalar(i), 0, 0),
                                       btVector3(btScalar(i + 1), 1, 1), BOX_SHAPE_PROXYTYPE,
                                       client, 1, -1, nullptr));
  return proxies;
}

// Programs that use the broad phase without a world give it clients of any kind.
TEST(AdapterTraps, ClientsAreNotReadWithoutAGhostCallback) {
  GpuLbvhBroadphase ours;
  std::vector<btBroadphaseProxy*> proxies = row(ours, 20, reinterpret_cast<void*>(16));
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 19);
  ours.setAabb(proxies[5], btVector3(50, 0, 0), btVector3(51, 1, 1), nullptr);
  ours.destroyProxy(proxies[9], nullptr);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.getOverlappingPairCache()->getNumOverlappingPairs(), 15);
}

// Bullet's hash masks by the array's capacity, so writing to the array or reserving breaks
// findPair.
TEST(AdapterTraps, AHashedCacheHandedInStaysWhole) {
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

// Planes must not make the grid coarser for all others, nor lie above them in the tree.
TEST(AdapterTraps, PlanesStayOutOfTheTree) {
  GpuLbvhBroadphase ours;
  int number = 0;
  const btScalar reach = btScalar(BT_LARGE_FLOAT);  // 1e18; 1e30 in double
  const btVector3 corner(reach, reach, reach);
  ours.createProxy(-corner, corner, STATIC_PLANE_PROXYTYPE, &number, 1, -1, nullptr);
  row(ours, 50, &number);
  ours.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ours.stats().oversizedBoxes, 1u);
  EXPECT_EQ(ours.stats().pairs, 49u + 50u);
}

// A collision world destroys its objects' proxies in its destructor, so the broad phase must
// outlive it. There is not always a dispatcher.
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

// OpenMW reads the size to learn how many threads may cast rays.
TEST(AdapterTraps, RaysMayBeCastOnAllOfBulletsThreads) {
  const auto broadphase = std::make_unique<GpuLbvhBroadphase>();
  EXPECT_EQ(broadphase->m_rayTestStacks.size(), int{BT_MAX_THREAD_COUNT});
}

}  // namespace
