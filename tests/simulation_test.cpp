// Whole Bullet worlds with our broad phase, beside the same worlds with btDbvtBroadphase.
#include <gtest/gtest.h>

#include "GpuLbvhBroadphase.h"
#include "scenes.h"

// For GoogleTest: the default prints bytes.
void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

namespace {

/// Five boxes of side 1, one on the other.
void buildTower(World& world) {
  world.addStatic(world.make<btBoxShape>(btVector3(50, 1, 50)), at(0, -1, 0));
  btCollisionShape& box =
      world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5)));
  for (int i = 0; i < 5; ++i)
    world.addMoving(box, 1, at(0, btScalar(0.5) + btScalar(i) * btScalar(1.02), 0));
}

TEST(Simulation, AStackComesToRestAsWithDbvt) {
  World ours(std::make_unique<GpuLbvhBroadphase>()), dbvt(std::make_unique<btDbvtBroadphase>());
  for (World* world : {&ours, &dbvt}) {
    buildTower(*world);
    for (int step = 0; step < 300; ++step) world->step();
  }
  const btCollisionObjectArray& a = ours.bullet().getCollisionObjectArray();
  const btCollisionObjectArray& b = dbvt.bullet().getCollisionObjectArray();
  for (int i = 1; i < a.size(); ++i) {
    const btVector3 where = a[i]->getWorldTransform().getOrigin();
    EXPECT_NEAR(where.y(), i - 0.5, 0.02) << "box " << i;
    EXPECT_NEAR(where.x(), 0, 0.02);
    EXPECT_LT((where - b[i]->getWorldTransform().getOrigin()).length(), 0.01) << "box " << i;
    EXPECT_LT(btRigidBody::upcast(a[i])->getLinearVelocity().length(), 0.01) << "box " << i;
  }
}

class EveryScene : public testing::TestWithParam<Scene> {};

// After each step the cache holds exactly the pairs that overlap, by brute force over the proxies.
TEST_P(EveryScene, PairsAreExactInEveryStep) {
  World world(std::make_unique<GpuLbvhBroadphase>());
  GetParam().build(world, {150, 1});
  const auto proxy = [&](int i) {
    return world.bullet().getCollisionObjectArray()[i]->getBroadphaseHandle();
  };
  for (int step = 0; step < 60; ++step) {
    world.step();
    btOverlappingPairCache& cache = *world.broadphase().getOverlappingPairCache();
    int expected = 0;
    for (int i = 0; i < world.objects(); ++i)
      for (int j = i + 1; j < world.objects(); ++j) {
        btBroadphaseProxy *a = proxy(i), *b = proxy(j);
        const bool pair =
            TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax) &&
            cache.needsBroadphaseCollision(a, b);
        expected += pair;
        ASSERT_EQ(cache.findPair(a, b) != nullptr, pair) << "step " << step;
      }
    ASSERT_EQ(cache.getNumOverlappingPairs(), expected);
  }
  EXPECT_GT(world.pairs(), 50);
}

// Bit-identical transforms, whatever the number of threads.
TEST_P(EveryScene, IsTheSameOnEveryThreadCount) {
  std::vector<btVector3> expected;
  for (const int threads : {1, 2, 4, 1}) {
    lbvh::Options options;
    options.threads = threads;
    World world(std::make_unique<GpuLbvhBroadphase>(options));
    GetParam().build(world, {400, 1});
    for (int step = 0; step < 40; ++step) world.step();
    std::vector<btVector3> places;
    for (int i = 0; i < world.objects(); ++i)
      places.push_back(
          world.bullet().getCollisionObjectArray()[i]->getWorldTransform().getOrigin());
    if (expected.empty()) expected = places;
    ASSERT_TRUE(places == expected) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Simulation, EveryScene, testing::ValuesIn(scenes()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
