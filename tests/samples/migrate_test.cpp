// SPDX-License-Identifier: Zlib
// migrateBroadphase: a running world that gets another broad phase goes on as if nothing had
// happened.
#include "migrateBroadphase.h"

#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <BulletSoftBody/btSoftBodyHelpers.h>
#include <BulletSoftBody/btSoftBodyRigidBodyCollisionConfiguration.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "GpuLbvhBroadphase.h"
#include "scenes/scenes.h"

namespace {

using Owner = std::unique_ptr<btBroadphaseInterface>;

struct WithSortedCache : GpuLbvhBroadphase {
  WithSortedCache() : GpuLbvhBroadphase({}, new btSortedOverlappingPairCache) {}
  ~WithSortedCache() override { delete getOverlappingPairCache(); }
};

struct Kind {
  const char* name;
  Owner (*make)();
  bool isExact;  ///< just after a migration; later dbvt has pairs of its fat boxes, too
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kKinds[] = {
    {"Ours", []() -> Owner { return std::make_unique<GpuLbvhBroadphase>(); }, true},
    {"OursSorted", []() -> Owner { return std::make_unique<WithSortedCache>(); }, true},
    {"Dbvt", []() -> Owner { return std::make_unique<btDbvtBroadphase>(); }, true},
    {"AxisSweep",
     []() -> Owner {
       const btVector3 corner(1000, 1000, 1000);
       return std::make_unique<bt32BitAxisSweep3>(-corner, corner, 500);
     },
     false},
    {"Simple", []() -> Owner { return std::make_unique<btSimpleBroadphase>(500); }, true},
};

using Pair = std::pair<const btCollisionObject*, const btCollisionObject*>;

const btCollisionObject* clientOf(const btBroadphaseProxy* proxy) {
  return static_cast<const btCollisionObject*>(proxy->m_clientObject);
}

/// The pairs in the order that algorithms rely on.
std::map<Pair, btCollisionAlgorithm*> pairsOf(btCollisionWorld& world) {
  std::map<Pair, btCollisionAlgorithm*> pairs;
  const btBroadphasePairArray& array = world.getPairCache()->getOverlappingPairArray();
  for (int i = 0; i < array.size(); ++i) {
    const Pair pair{clientOf(array[i].m_pProxy0), clientOf(array[i].m_pProxy1)};
    EXPECT_TRUE(pairs.emplace(pair, array[i].m_algorithm).second) << "a pair twice";
  }
  return pairs;
}

bool overlap(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  return TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax);
}

std::set<Pair> bruteForce(btCollisionWorld& world) {
  std::set<Pair> pairs;
  const btCollisionObjectArray& objects = world.getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i)
    for (int j = 0; j < objects.size(); ++j) {
      btBroadphaseProxy *a = objects[i]->getBroadphaseHandle(),
                        *b = objects[j]->getBroadphaseHandle();
      if (a->m_uniqueId < b->m_uniqueId && overlap(a, b) &&
          world.getPairCache()->needsBroadphaseCollision(a, b))
        pairs.insert({objects[i], objects[j]});
    }
  return pairs;
}

void expectPairsRight(btCollisionWorld& world, bool isExact) {
  const std::map<Pair, btCollisionAlgorithm*> pairs = pairsOf(world);
  const std::set<Pair> expected = bruteForce(world);
  for (const Pair& pair : expected) ASSERT_EQ(pairs.count(pair), 1u);
  if (isExact) {
    ASSERT_EQ(pairs.size(), expected.size());
  }
}

/// What a migration must not touch, of each object.
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

/// The world has a few more, of predicted contacts.
int manifoldsOfPairs(btCollisionWorld& world) {
  btManifoldArray manifolds;
  for (const auto& pair : pairsOf(world))
    if (pair.second != nullptr) pair.second->getAllContactManifolds(manifolds);
  return manifolds.size();
}

/// Migrates, and compares what was before with what is now.
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

// There, with the old one destroyed, and back. Rain: five kinds of shapes, each against a mesh that
// was added first, so an algorithm that got its objects the wrong way round would be noticed.
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
    migrateAndCompare(world.bullet(), *second, to.isExact);  // one that was used before
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

class EveryKind : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Migrate, EveryKind, testing::ValuesIn(kKinds),
                         [](const auto& param) { return std::string(param.param.name); });

void buildTower(World& world) {
  world.addStatic(world.make<btBoxShape>(btVector3(50, 1, 50)), at(0, -1, 0));
  auto& box = world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5)));
  for (int i = 0; i < 8; ++i) world.addMoving(box, 1, at(0, btScalar(0.5) + btScalar(i), 0));
}

// A tower stands on the impulses of the last step; without them it would start to settle again.
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

struct EvenOnly : btOverlapFilterCallback {
  bool needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const override {
    for (const btBroadphaseProxy* proxy : {a, b}) {
      const btBroadphaseProxy* handle = clientOf(proxy)->getBroadphaseHandle();
      EXPECT_TRUE(handle == proxy || handle == nullptr) << "never an old one";
    }
    return (clientOf(a)->getUserIndex() + clientOf(b)->getUserIndex()) % 2 == 0;
  }
};

/// A grid of overlapping spheres, numbered, in a collision world of its own.
class Spheres {
 public:
  explicit Spheres(btBroadphaseInterface& broadphase)
      : dispatcher_(&configuration_), world(&dispatcher_, &broadphase, &configuration_) {
    for (int i = 0; i < 60; ++i) {
      auto object = std::make_unique<btCollisionObject>();
      add(*object, btVector3(btScalar(i % 4), btScalar(i / 4 % 4), btScalar(i / 16)), i);
      objects_.push_back(std::move(object));
    }
  }

  void add(btCollisionObject& object, const btVector3& place, int number) {
    object.setCollisionShape(&ball_);
    object.getWorldTransform().setOrigin(place);
    object.setUserIndex(number);
    world.addCollisionObject(&object, 1 << (number % 3), -1);
  }

 private:
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_;
  btSphereShape ball_{btScalar(0.7)};
  std::vector<std::unique_ptr<btCollisionObject>> objects_;

 public:
  btCollisionWorld world;
};

TEST_P(EveryKind, TakesTheFilterCallbackAlong) {
  Owner first = std::make_unique<GpuLbvhBroadphase>(), second = GetParam().make();
  EvenOnly filter;
  Spheres spheres(*first);
  first->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  spheres.world.performDiscreteCollisionDetection();
  migrateBroadphase(&spheres.world, second.get());
  EXPECT_EQ(second->getOverlappingPairCache()->getOverlapFilterCallback(), &filter);
  EXPECT_EQ(first->getOverlappingPairCache()->getOverlapFilterCallback(), nullptr);
  expectPairsRight(spheres.world, GetParam().isExact);

  // Only a callback that is there is moved: the new cache keeps its own if the old one has none.
  second->getOverlappingPairCache()->setOverlapFilterCallback(nullptr);
  first->getOverlappingPairCache()->setOverlapFilterCallback(&filter);
  migrateBroadphase(&spheres.world, first.get());
  EXPECT_EQ(first->getOverlappingPairCache()->getOverlapFilterCallback(), &filter);
  expectPairsRight(spheres.world, true);
}

// What was refused before is asked about again after, in both broad phases.
TEST(Migrate, RefusedPairsAreAskedAboutAgainInTheNewBroadphase) {
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

// From a sorted cache, too, which does not tell its ghost callback that a pair is removed.
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

TEST(Migrate, LeavesProxiesThatAreNoObjects) {
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

// A broad phase that was used before may order ids the other way. An algorithm for (mesh, ball)
// must not get (ball, mesh).
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

}  // namespace
