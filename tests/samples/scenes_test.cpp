// SPDX-License-Identifier: Zlib
// Tests every scene of the samples, with fewer objects. Compares the pairs of our broad phase and
// of btDbvtBroadphase with brute force. Compares simulations with different numbers of threads.
// Also checks properties of individual scenes.
#include <BulletSoftBody/btSoftBody.h>
#include <gtest/gtest.h>

#include <set>

#include "scenes/aabb_cost.h"
#include "scenes/scenes.h"

// Without this function, GoogleTest would print the bytes of a scene.
void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

namespace {

constexpr int kObjects = 220;

std::unique_ptr<World> start(const Scene& scene, const char* broadphase, int objects = kObjects,
                             const lbvh::Options& options = {}) {
  auto world = std::make_unique<World>(makeBroadphase(broadphase, setupFor(objects, options)));
  scene.build(*world, {objects, 1});
  return world;
}

const btCollisionObjectArray& objectsOf(World& world) {
  return world.bullet().getCollisionObjectArray();
}

bool overlapping(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax);
}

/// Soft bodies and characters change boxes after a step has found its pairs. So the pairs are
/// computed again here.
void expectPairsOfBruteForce(World& world, bool exactly) {
  world.bullet().computeOverlappingPairs();
  btOverlappingPairCache& cache = *world.broadphase().getOverlappingPairCache();
  const btCollisionObjectArray& objects = objectsOf(world);
  int expected = 0;
  for (int i = 0; i < objects.size(); ++i)
    for (int j = i + 1; j < objects.size(); ++j) {
      btBroadphaseProxy *a = objects[i]->getBroadphaseHandle(),
                        *b = objects[j]->getBroadphaseHandle();
      if (!overlapping(a, b) || !cache.needsBroadphaseCollision(a, b)) continue;
      ++expected;
      ASSERT_NE(cache.findPair(a, b), nullptr) << i << ", " << j;
    }
  // btDbvtBroadphase also has pairs of fattened boxes, but no pair that the filter refuses.
  if (exactly) ASSERT_EQ(cache.getNumOverlappingPairs(), expected);
  const btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i)
    ASSERT_TRUE(cache.needsBroadphaseCollision(pairs[i].m_pProxy0, pairs[i].m_pProxy1));
}

/// Checks that ghosts list all objects that they overlap. Returns the number of these objects.
/// @param exactly whether they must list nothing else
int expectGhostsList(World& world, bool exactly) {
  btOverlappingPairCache& cache = *world.broadphase().getOverlappingPairCache();
  const btCollisionObjectArray& objects = objectsOf(world);
  int all = 0;
  for (int i = 0; i < objects.size(); ++i) {
    const auto* ghost = btGhostObject::upcast(objects[i]);
    if (ghost == nullptr) continue;
    std::set<const btCollisionObject*> listed;
    for (int j = 0; j < ghost->getNumOverlappingObjects(); ++j)
      listed.insert(ghost->getOverlappingObject(j));
    int expected = 0;
    for (int j = 0; j < objects.size(); ++j) {
      btBroadphaseProxy *a = objects[i]->getBroadphaseHandle(),
                        *b = objects[j]->getBroadphaseHandle();
      if (i == j || !overlapping(a, b) || !cache.needsBroadphaseCollision(a, b)) continue;
      EXPECT_EQ(listed.count(objects[j]), 1u) << i << ", " << j;
      ++expected;
    }
    if (exactly) EXPECT_EQ(ghost->getNumOverlappingObjects(), expected);
    all += expected;
  }
  return all;
}

/// Characters move their ghosts after a step has found its pairs. Until the next step, a ghost's
/// list may contain objects that the ghost does not overlap, but no object is missing.
int expectGhostsRight(World& world) {
  expectGhostsList(world, false);
  world.bullet().computeOverlappingPairs();
  return expectGhostsList(world, true);
}

class EveryScene : public testing::TestWithParam<Scene> {};

TEST_P(EveryScene, HasThePairsOfBruteForceInEveryStep) {
  const auto world = start(GetParam(), "gpu-lbvh");
  for (int step = 0; step < 120; ++step) {
    world->step();
    ASSERT_NO_FATAL_FAILURE(expectPairsOfBruteForce(*world, true)) << "step " << step;
  }
  EXPECT_EQ(errorOf(world->broadphase()), "");
  EXPECT_GT(world->pairs(), 5);
}

TEST_P(EveryScene, HasThePairsOfBruteForceAtTheEndWithDbvt) {
  const auto world = start(GetParam(), "dbvt");
  for (int step = 0; step < 120; ++step) world->step();
  expectPairsOfBruteForce(*world, false);
}

TEST_P(EveryScene, ContinuesWhenItsBroadPhaseIsSwapped) {
  const auto world = start(GetParam(), "dbvt");
  const int objects = world->objects();
  for (const char* next : {"gpu-lbvh", "axis-sweep", "gpu-lbvh"}) {
    for (int step = 0; step < 20; ++step) world->step();
    world->setBroadphase(makeBroadphase(next, setupFor(kObjects, {})));
    world->step();
    expectPairsOfBruteForce(*world, next == std::string("gpu-lbvh"));
    expectGhostsRight(*world);
  }
  EXPECT_EQ(world->objects(), objects);
}

TEST_P(EveryScene, IsTheSameOnEveryThreadCount) {
  std::set<std::uint64_t> hashes;
  for (const int threads : {1, 2, 4, 1}) {
    lbvh::Options options;
    options.threads = threads;
    const auto world = start(GetParam(), "gpu-lbvh", 400, options);
    for (int step = 0; step < 40; ++step) world->step();
    hashes.insert(world->hash());
    ASSERT_EQ(hashes.size(), 1u) << threads << " threads";
  }
}

TEST_P(EveryScene, HasTheRequestedObjectsAndAFewStaticBodies) {
  for (const int objects : {1, 7, kObjects}) {
    const auto world = start(GetParam(), "gpu-lbvh", objects);
    world->step();
    EXPECT_GE(world->objects(), objects);
    EXPECT_LE(world->objects(), objects + kMaxStaticBodies);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, EveryScene, testing::ValuesIn(scenes()),
                         [](const auto& param) { return std::string(param.param.name); });

std::unique_ptr<World> after(int steps, const char* scene) {
  auto world = start(*findScene(scene), "gpu-lbvh");
  for (int step = 0; step < steps; ++step) world->step();
  return world;
}

/// Number of objects that are farther than `distance` from their start.
int moved(World& world, const char* scene, btScalar distance) {
  const auto before = start(*findScene(scene), "gpu-lbvh");
  int count = 0;
  for (int i = 0; i < world.objects(); ++i)
    count += objectsOf(world)[i]->getWorldTransform().getOrigin().distance(
                 objectsOf(*before)[i]->getWorldTransform().getOrigin()) > distance;
  return count;
}

TEST(Scenes, RagdollsHoldTogetherAndJointedLimbsDoNotPair) {
  const auto world = after(120, "ragdolls");
  btDiscreteDynamicsWorld& bullet = world->bullet();
  EXPECT_EQ(bullet.getNumConstraints(), kObjects / 11 * 10);
  for (int i = 0; i < bullet.getNumConstraints(); ++i) {
    btRigidBody &a = bullet.getConstraint(i)->getRigidBodyA(),
                &b = bullet.getConstraint(i)->getRigidBodyB();
    EXPECT_LT(a.getWorldTransform().getOrigin().distance(b.getWorldTransform().getOrigin()), 0.8);
    EXPECT_EQ(world->broadphase().getOverlappingPairCache()->findPair(a.getBroadphaseHandle(),
                                                                      b.getBroadphaseHandle()),
              nullptr);
  }
}

TEST(Scenes, NineTenthsOfTheCityNeverMove) {
  const auto world = after(60, "city");
  EXPECT_EQ(world->staticObjects(), kObjects * 9 / 10 + 1);
  EXPECT_EQ(moved(*world, "city", btScalar(0.5)), kObjects / 10);
}

TEST(Scenes, BulletsMoveBricksAndStayInTheRange) {
  const auto world = after(90, "bullets");
  EXPECT_GT(moved(*world, "bullets", btScalar(0.3)), kObjects / 5 + 10);
  for (int i = 0; i < world->objects(); ++i)
    EXPECT_LT(objectsOf(*world)[i]->getWorldTransform().getOrigin().length(), 60) << i;
}

TEST(Scenes, GhostsListTheObjectsThatTheyOverlap) {
  const auto world = after(90, "triggers");
  int characters = 0;
  EXPECT_GT(expectGhostsRight(*world), 5);
  for (int i = 0; i < world->objects(); ++i)
    characters +=
        (objectsOf(*world)[i]->getCollisionFlags() & btCollisionObject::CF_CHARACTER_OBJECT) != 0;
  EXPECT_EQ(characters, kObjects / 50);
  EXPECT_GE(moved(*world, "triggers", 1), kObjects / 50);
}

TEST(Scenes, ATwentiethOfTheObjectsAreSoft) {
  const auto world = after(90, "softbodies");
  int soft = 0;
  for (int i = 0; i < world->objects(); ++i) {
    const btSoftBody* body = btSoftBody::upcast(objectsOf(*world)[i]);
    if (body == nullptr) continue;
    ++soft;
    btVector3 low, high;
    body->getAabb(low, high);
    EXPECT_LT((high - low).length(), 12) << "the body fell apart";
  }
  EXPECT_EQ(soft, kObjects / 20);
}

/// Number of movable objects that are not active.
int asleep(World& world) {
  int count = 0;
  for (int i = 0; i < world.objects(); ++i)
    count += !objectsOf(world)[i]->isStaticObject() && !objectsOf(world)[i]->isActive();
  return count;
}

TEST(Scenes, AStackThatIsKeptAwakeStandsAndDoesNotFallAsleep) {
  EXPECT_EQ(asleep(*after(200, "stack")), kObjects);
  const auto world = start(*findScene("stack"), "gpu-lbvh");
  world->keepAwake();
  for (int step = 0; step < 200; ++step) world->step();
  EXPECT_EQ(asleep(*world), 0);
  EXPECT_EQ(moved(*world, "stack", btScalar(0.5)), 0);
}

TEST(Scenes, ObjectsThatASceneDoesNotSimulateAreNotWoken) {
  const auto world = start(*findScene("bullets"), "gpu-lbvh");
  world->keepAwake();
  for (int step = 0; step < 30; ++step) world->step();
  for (int i = 0; i < world->objects(); ++i) {
    const int state = objectsOf(*world)[i]->getActivationState();
    if (!objectsOf(*world)[i]->isStaticObject())
      EXPECT_TRUE(state == DISABLE_DEACTIVATION || state == DISABLE_SIMULATION) << i;
  }
  EXPECT_GT(asleep(*world), 5) << "bullets that are not shot yet";
}

TEST(Scenes, MeasuringBulletsTimeDoesNotChangeTheWorld) {
  const auto world = start(*findScene("pile"), "gpu-lbvh");
  const btBroadphaseInterface* before = world->bullet().getBroadphase();
  for (int step = 0; step < 60; ++step) {
    world->step();
    EXPECT_GE(millisecondsOfAabbs(world->bullet()), 0);
  }
  EXPECT_EQ(world->bullet().getBroadphase(), before);
  EXPECT_EQ(world->hash(), after(60, "pile")->hash());
}

TEST(Scenes, EveryBoxOfTheSwarmMoves) {
  const auto world = after(20, "swarm");
  EXPECT_EQ(moved(*world, "swarm", btScalar(0.2)), kObjects);
}

TEST(Scenes, EveryBodyOverlapsEveryPlane) {
  const auto world = after(120, "planes");
  EXPECT_EQ(world->staticObjects(), 9);
  EXPECT_GT(world->pairs(), 9 * kObjects);
  for (int i = 0; i < world->objects(); ++i)
    EXPECT_GT(objectsOf(*world)[i]->getWorldTransform().getOrigin().y(), -1) << "fell through";
}

}  // namespace
