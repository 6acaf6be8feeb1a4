// SPDX-License-Identifier: Zlib
// Tests ghost objects and characters, whose pairs are read between two steps.
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <BulletDynamics/Character/btKinematicCharacterController.h>
#include <btBulletDynamicsCommon.h>

#include <cmath>
#include <deque>
#include <functional>
#include <initializer_list>
#include <set>

#include "GpuLbvhBroadphase.h"
#include "strangers_caches.h"
#include "twins.h"

namespace {

using namespace twins;
using Objects = std::set<const btCollisionObject*>;

struct ObjectAndProxy {
  btCollisionObject* object;
  btBroadphaseProxy* proxy;
};

/// Plain objects and ghosts of both kinds in a broad phase, without a world.
class Crowd {
 public:
  explicit Crowd(btBroadphaseInterface& broadphase) : broadphase_(broadphase) {}

  void create(Random& random) {
    const std::uint32_t kind = random.below(5);
    if (kind == 0) all_.push_back(std::make_unique<btPairCachingGhostObject>());
    if (kind == 1) all_.push_back(std::make_unique<btGhostObject>());
    if (kind > 1) all_.push_back(std::make_unique<btCollisionObject>());
    const Box box = randomBox(random, 8, 2);
    const int mask = random.below(3) == 0 ? 5 : -1;
    btBroadphaseProxy* proxy = broadphase_.createProxy(box.min, box.max, 0, all_.back().get(),
                                                       1 << random.below(4), mask, nullptr);
    all_.back()->setBroadphaseHandle(proxy);
    living_.push_back({all_.back().get(), proxy});
  }
  void move(Random& random) {
    if (living_.empty()) return;
    const Box box = randomBox(random, 8, 2);
    broadphase_.setAabb(living_[pick(random)].proxy, box.min, box.max, nullptr);
  }
  void drift(Random& random) {
    btBroadphaseProxy* proxy = living_[pick(random)].proxy;
    const auto one = [&] { return btScalar(random.uniform(-0.05f, 0.05f)); };
    const btVector3 by(one(), one(), one());
    broadphase_.setAabb(proxy, proxy->m_aabbMin + by, proxy->m_aabbMax + by, nullptr);
  }
  void destroy(Random& random) {
    if (living_.empty()) return;
    const std::size_t i = pick(random);
    broadphase_.destroyProxy(living_[i].proxy, nullptr);
    living_.erase(living_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  /// Compares every ghost's list and cache with brute force. Returns the number of pairs. Between
  /// two steps a list may also have living objects that the ghost has overlapped since the last
  /// step.
  std::size_t check(bool isStepped = false) {
    std::size_t pairs = 0;
    Objects alive;
    for (const ObjectAndProxy& one : living_) alive.insert(one.object);
    for (const ObjectAndProxy& one : living_) {
      btGhostObject* ghost = btGhostObject::upcast(one.object);
      if (ghost == nullptr) continue;
      Objects expected, found;
      for (const ObjectAndProxy& other : living_)
        if (other.proxy != one.proxy && overlap(one.proxy, other.proxy) &&
            shouldCollide(one.proxy, other.proxy))
          expected.insert(other.object);
      for (int i = 0; i < ghost->getNumOverlappingObjects(); ++i)
        found.insert(ghost->getOverlappingObject(i));
      EXPECT_EQ(static_cast<int>(found.size()), ghost->getNumOverlappingObjects());
      if (isStepped)
        EXPECT_EQ(found, expected);
      else
        EXPECT_TRUE(std::includes(found.begin(), found.end(), expected.begin(), expected.end()));
      EXPECT_TRUE(std::includes(alive.begin(), alive.end(), found.begin(), found.end()));
      pairs += expected.size();
      if (auto* caching = dynamic_cast<btPairCachingGhostObject*>(ghost))
        EXPECT_EQ(caching->getOverlappingPairCache()->getNumOverlappingPairs(),
                  static_cast<int>(found.size()));
    }
    return pairs;
  }

  const std::vector<ObjectAndProxy>& living() const { return living_; }

 private:
  std::size_t pick(Random& random) const {
    return random.below(static_cast<std::uint32_t>(living_.size()));
  }

  btBroadphaseInterface& broadphase_;
  std::deque<std::unique_ptr<btCollisionObject>>
      all_;  // kept to the end, so that no pointer dangles
  std::vector<ObjectAndProxy> living_;
};

void checkThroughRandomCalls(GpuLbvhBroadphase& broadphase, Random& random) {
  Crowd crowd(broadphase);
  std::size_t pairs = 0;
  for (int call = 0; call < 1500 && !testing::Test::HasFailure(); ++call) {
    SCOPED_TRACE(call);
    const std::uint32_t what = random.below(20);
    if (what < 5 && crowd.living().size() < 60) crowd.create(random);
    if (what >= 5 && what < 17) crowd.move(random);
    if (what == 17 && crowd.living().size() > 40) crowd.destroy(random);
    if (what == 18) broadphase.calculateOverlappingPairs(nullptr);
    pairs += crowd.check(what == 18);
  }
  EXPECT_GT(pairs, 10000u);
  while (!crowd.living().empty()) crowd.destroy(random);
}

TEST(AdapterGhosts, NoPairIsMissingAfterEachCallAndNoneIsExtraAfterAStep) {
  Random random(71);
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  checkThroughRandomCalls(broadphase, random);
}

/// A class of cache whose ghost callback the broad phase cannot read.
struct CacheOfTheUser : btHashedOverlappingPairCache {};

TEST(AdapterGhosts, PairsAreRightWithASuppliedCache) {
  Random random(72);
  btHashedOverlappingPairCache hashed;
  CacheOfTheUser unknown;
  btHashedOverlappingPairCache inner;
  strangers::Talk talk;
  const auto wrapped = strangers::wrap(inner, talk);
  for (btOverlappingPairCache* cache :
       std::initializer_list<btOverlappingPairCache*>{&hashed, &unknown, wrapped.get()}) {
    btGhostPairCallback callback;
    cache->setInternalGhostPairCallback(&callback);
    talk = {};
    GpuLbvhBroadphase broadphase({}, cache);
    checkThroughRandomCalls(broadphase, random);
  }
  EXPECT_GT(talk.adds, 1000);
  EXPECT_EQ(talk.others + talk.questions, 0) << "calls that btDbvtBroadphase does not make";
}

// Between two steps most boxes drift a little and some move far. Ghosts are read during this time.
TEST(AdapterGhosts, PairsAreRightWhileTheCrowdDrifts) {
  Random random(74);
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  Crowd crowd(broadphase);
  for (int i = 0; i < 1000; ++i) crowd.create(random);
  std::size_t pairs = 0;
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::uint32_t far = round % 4 == 3 ? 2 : 50;  // one in this many calls moves a box far
    for (int call = 0; call < 1500; ++call) {
      if (random.below(far) == 0)
        crowd.move(random);
      else
        crowd.drift(random);
      if (call % 300 == 299) pairs += crowd.check();
    }
    if (round % 2 == 0) crowd.destroy(random);
    if (round % 3 == 2) continue;
    broadphase.calculateOverlappingPairs(nullptr);
    crowd.check(true);
  }
  EXPECT_GT(pairs, 100000u);
  while (!crowd.living().empty()) crowd.destroy(random);
}

bool lists(const btGhostObject& ghost, const btCollisionObject& object) {
  for (int i = 0; i < ghost.getNumOverlappingObjects(); ++i)
    if (ghost.getOverlappingObject(i) == &object) return true;
  return false;
}

// A zone rests or moves a little. More objects pass through the zone than its list of nearby
// proxies can hold. For a while the zone's box has a NaN.
TEST(AdapterGhosts, ManyObjectsMayPassThroughAZone) {
  Random random(75);
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btGhostObject ghost;
  const btVector3 reach(4, 4, 4), half(btScalar(0.2), btScalar(0.2), btScalar(0.2));
  btBroadphaseProxy* zone = broadphase.createProxy(-reach, reach, 0, &ghost, 1, -1, nullptr);
  std::vector<btCollisionObject> objects(600);
  std::vector<btBroadphaseProxy*> proxies;
  const auto drawPlace = [&] {
    const auto one = [&] { return btScalar(random.uniform(-6, 6)); };
    return btVector3(one(), one(), one());
  };
  const auto check = [&](bool isStepped) {
    int expected = 0;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (!overlap(proxies[i], zone)) continue;
      ++expected;
      EXPECT_TRUE(lists(ghost, objects[i])) << i;
    }
    if (isStepped) EXPECT_EQ(ghost.getNumOverlappingObjects(), expected);
  };
  for (btCollisionObject& object : objects) {
    const btVector3 at = drawPlace();
    proxies.push_back(broadphase.createProxy(at - half, at + half, 0, &object, 1, 1, nullptr));
  }
  for (int call = 0; call < 3000 && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    const btVector3 at = drawPlace();
    broadphase.setAabb(proxies[random.below(600)], at - half, at + half, nullptr);
    btVector3 by = drawPlace() / 100;
    if (call % 200 == 150) by[1] = std::nanf("");
    if (call % 5 == 0) broadphase.setAabb(zone, by - reach, by + reach, nullptr);
    if (call % 20 == 0) broadphase.calculateOverlappingPairs(nullptr);
    check(call % 20 == 0);
  }
  for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
  broadphase.destroyProxy(zone, nullptr);
}

// The finder does not know the pairs that ghosts got between steps. If a filter was changed in
// place, the next step must also apply the new filter to these pairs.
TEST(AdapterGhosts, FiltersChangedInPlaceTakeEffectAtTheStep) {
  Random random(73);
  GpuLbvhBroadphase broadphase;
  btGhostPairCallback callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  Crowd crowd(broadphase);
  for (int i = 0; i < 60; ++i) crowd.create(random);
  for (int step = 0; step < 200; ++step) {
    SCOPED_TRACE(step);
    for (int i = 0; i < 10; ++i) {
      crowd.move(random);
      btBroadphaseProxy* proxy = crowd.living()[random.below(60)].proxy;
      proxy->m_collisionFilterMask = random.below(2) == 0 ? -1 : 2;
    }
    broadphase.calculateOverlappingPairs(nullptr);
    crowd.check(true);
    std::set<std::pair<int, int>> expected, found;
    const btBroadphasePairArray& array =
        broadphase.getOverlappingPairCache()->getOverlappingPairArray();
    for (int i = 0; i < array.size(); ++i)
      found.insert({array[i].m_pProxy0->m_uniqueId, array[i].m_pProxy1->m_uniqueId});
    for (const ObjectAndProxy& a : crowd.living())
      for (const ObjectAndProxy& b : crowd.living())
        if (a.proxy->m_uniqueId < b.proxy->m_uniqueId && overlap(a.proxy, b.proxy) &&
            shouldCollide(a.proxy, b.proxy))
          expected.insert({a.proxy->m_uniqueId, b.proxy->m_uniqueId});
    ASSERT_EQ(found, expected);
  }
  while (!crowd.living().empty()) crowd.destroy(random);
}

void checkThatACallbackInstalledLateIsNoticed(GpuLbvhBroadphase& broadphase) {
  btGhostPairCallback callback;
  btPairCachingGhostObject ghost;
  btCollisionObject object, another;
  const auto create = [&](btScalar x, btCollisionObject& client) {
    return broadphase.createProxy(btVector3(x, 0, 0), btVector3(x + 1, 1, 1), 0, &client, 1, -1,
                                  nullptr);
  };
  btBroadphaseProxy* first = create(0, ghost);
  btBroadphaseProxy* second = create(5, object);
  btBroadphaseProxy* third = create(50, another);
  broadphase.calculateOverlappingPairs(nullptr);
  broadphase.setAabb(third, btVector3(7, 0, 0), btVector3(8, 1, 1), nullptr);
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  broadphase.setAabb(second, btVector3(1, 0, 0), btVector3(2, 1, 1), nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 1);
  broadphase.setAabb(first, btVector3(8, 0, 0), btVector3(9, 1, 1), nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 2) << "it moved before there was a callback";
  broadphase.calculateOverlappingPairs(nullptr);
  EXPECT_EQ(ghost.getNumOverlappingObjects(), 1) << "the second one is far away";
  broadphase.destroyProxy(third, nullptr);
  broadphase.destroyProxy(second, nullptr);
  broadphase.destroyProxy(first, nullptr);
}

TEST(AdapterGhosts, ACallbackInstalledLateIsNoticed) {
  btHashedOverlappingPairCache hashed;
  GpuLbvhBroadphase own, withHashed(&hashed);
  checkThatACallbackInstalledLateIsNoticed(own);
  checkThatACallbackInstalledLateIsNoticed(withHashed);
}

/// A world with a ghost callback, and a sphere shape for the objects of the tests.
struct GhostWorld {
  explicit GhostWorld(btOverlappingPairCache* handedIn = nullptr) : broadphase(handedIn) {
    world.getPairCache()->setInternalGhostPairCallback(&callback);
  }
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btSequentialImpulseConstraintSolver solver;
  btGhostPairCallback callback;
  btSphereShape sphere{1};
  GpuLbvhBroadphase broadphase;
  btDiscreteDynamicsWorld world{&dispatcher, &broadphase, &solver, &configuration};
};

// A zone sends all objects in it away. The program iterates over the zone's list, or over all pairs
// of the world, and moves each object that it finds.
TEST(AdapterGhosts, ALoopOverPairsMayMoveWhatItFinds) {
  btHashedOverlappingPairCache hashed;
  for (btOverlappingPairCache* handedIn : {static_cast<btOverlappingPairCache*>(nullptr),
                                           static_cast<btOverlappingPairCache*>(&hashed)})
    for (const bool overPairs : {false, true}) {
      GhostWorld one(handedIn);
      btGhostObject zone;
      zone.setCollisionShape(&one.sphere);
      one.world.addCollisionObject(&zone, 2, 1);
      std::vector<btCollisionObject> objects(8);
      for (btCollisionObject& object : objects) {
        object.setCollisionShape(&one.sphere);
        one.world.addCollisionObject(&object, 1, 2);
      }
      one.world.performDiscreteCollisionDetection();
      std::set<btCollisionObject*> sent;
      const auto send = [&](btCollisionObject* object) {
        sent.insert(object);
        const btVector3 far(100 + 3 * btScalar(sent.size()), 0, 0);
        object->setWorldTransform(btTransform(btQuaternion::getIdentity(), far));
        one.world.updateSingleAabb(object);
      };
      const btBroadphasePairArray& pairs = one.world.getPairCache()->getOverlappingPairArray();
      for (int i = 0; !overPairs && i < 8; ++i) {
        ASSERT_LT(i, zone.getNumOverlappingObjects());
        send(zone.getOverlappingObject(i));
      }
      for (int i = 0; overPairs && i < 8; ++i) {
        ASSERT_LT(i, pairs.size());
        void* const clients[] = {pairs[i].m_pProxy0->m_clientObject,
                                 pairs[i].m_pProxy1->m_clientObject};
        send(static_cast<btCollisionObject*>(clients[clients[0] == &zone ? 1 : 0]));
      }
      EXPECT_EQ(sent.size(), 8u);
      one.world.performDiscreteCollisionDetection();
      EXPECT_EQ(zone.getNumOverlappingObjects(), 0);
      EXPECT_EQ(pairs.size(), 0);
      for (btCollisionObject& object : objects) one.world.removeCollisionObject(&object);
      one.world.removeCollisionObject(&zone);
    }
}

// setAabb gets no dispatcher here, so it must not remove a pair that has a contact algorithm.
// Otherwise the manifold would stay in the dispatcher, and the next step would read the deleted
// body.
TEST(AdapterGhosts, MovingWithoutADispatcherLosesNoManifold) {
  btHashedOverlappingPairCache hashed;
  for (btOverlappingPairCache* handedIn : {static_cast<btOverlappingPairCache*>(nullptr),
                                           static_cast<btOverlappingPairCache*>(&hashed)}) {
    GhostWorld one(handedIn);
    btGhostObject ghost;
    ghost.setCollisionShape(&one.sphere);
    ghost.setCollisionFlags(btCollisionObject::CF_NO_CONTACT_RESPONSE);
    one.world.addCollisionObject(&ghost, 1, -1);
    auto body = std::make_unique<btRigidBody>(1, nullptr, &one.sphere);
    one.world.addRigidBody(body.get());
    one.world.stepSimulation(btScalar(1) / 60);
    ASSERT_EQ(one.dispatcher.getNumManifolds(), 1);
    const btVector3 far(50, 0, 0), half(1, 1, 1);
    body->setWorldTransform(btTransform(btQuaternion::getIdentity(), far));
    one.broadphase.setAabb(body->getBroadphaseHandle(), far - half, far + half, nullptr);
    one.world.removeRigidBody(body.get());
    body.reset();
    for (int i = 0; i < 3; ++i) one.world.stepSimulation(btScalar(1) / 60);
    EXPECT_EQ(one.dispatcher.getNumManifolds(), 0);
    one.world.removeCollisionObject(&ghost);
  }
}

/// Moves an object back when the first pair is removed.
struct MovesBack : btGhostPairCallback {
  void* removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b,
                              btDispatcher* dispatcher) override {
    if (moveBack) std::exchange(moveBack, nullptr)();
    return btGhostPairCallback::removeOverlappingPair(a, b, dispatcher);
  }
  std::function<void()> moveBack;
};

// The step has found that two objects have left the ghost. While the step removes the pair of the
// first object, the second object comes back.
TEST(AdapterGhosts, AnObjectThatComesBackDuringTheStepIsNotMissing) {
  GpuLbvhBroadphase broadphase;
  MovesBack callback;
  broadphase.getOverlappingPairCache()->setInternalGhostPairCallback(&callback);
  btGhostObject ghost;
  btCollisionObject objects[2];
  const btVector3 low(0, 0, 0), high(1, 1, 1), far(50, 50, 50);
  btBroadphaseProxy* proxies[3];
  btCollisionObject* const clients[] = {&ghost, &objects[0], &objects[1]};
  for (int i = 0; i < 3; ++i)
    proxies[i] =
        broadphase.createProxy(low, high, 0, clients[i], i == 0 ? 1 : 2, i == 0 ? 2 : 1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  for (int i = 1; i < 3; ++i) broadphase.setAabb(proxies[i], far, far + high, nullptr);
  callback.moveBack = [&] { broadphase.setAabb(proxies[2], low, high, nullptr); };
  for (int step = 0; step < 2; ++step) {
    broadphase.calculateOverlappingPairs(nullptr);
    ASSERT_EQ(ghost.getNumOverlappingObjects(), 1) << step;
    EXPECT_EQ(ghost.getOverlappingObject(0), &objects[1]);
  }
  for (btBroadphaseProxy* proxy : proxies) broadphase.destroyProxy(proxy, nullptr);
}

// Without a dispatcher an algorithm cannot be freed at once, so the next step frees it.
TEST(AdapterGhosts, DestroyingWithoutADispatcherLosesNoManifold) {
  for (int kind = 0; kind < 3; ++kind)
    for (const bool inBulk : {false, true}) {
      SCOPED_TRACE(kind);
      btHashedOverlappingPairCache hashed;
      btSortedOverlappingPairCache sorted;
      btOverlappingPairCache* const caches[] = {nullptr, &hashed, &sorted};
      GhostWorld one(caches[kind]);
      btRigidBody rests(0, nullptr, &one.sphere);
      auto body = std::make_unique<btRigidBody>(1, nullptr, &one.sphere);
      one.world.addRigidBody(&rests);
      one.world.addRigidBody(body.get());
      one.world.stepSimulation(btScalar(1) / 60);
      ASSERT_EQ(one.dispatcher.getNumManifolds(), 1);
      btBroadphaseProxy* proxy = body->getBroadphaseHandle();
      if (inBulk)
        one.broadphase.destroyProxies(&proxy, 1, nullptr);
      else
        one.broadphase.destroyProxy(proxy, nullptr);
      EXPECT_EQ(one.world.getPairCache()->getNumOverlappingPairs(), 0);
      body->setBroadphaseHandle(nullptr);
      one.world.removeRigidBody(body.get());
      body.reset();
      one.world.stepSimulation(btScalar(1) / 60);
      EXPECT_EQ(one.dispatcher.getNumManifolds(), 0);
      one.world.removeRigidBody(&rests);
    }
}

TEST(AdapterGhosts, APairThatPartsAndOverlapsAgainKeepsItsAlgorithm) {
  GhostWorld one;
  btGhostObject ghost;
  btCollisionObject object;
  for (btCollisionObject* each : {static_cast<btCollisionObject*>(&ghost), &object}) {
    each->setCollisionShape(&one.sphere);
    one.world.addCollisionObject(each, 1, -1);
  }
  one.world.performDiscreteCollisionDetection();
  const auto algorithm = [&] {
    const btBroadphasePair* pair = one.world.getPairCache()->findPair(ghost.getBroadphaseHandle(),
                                                                      object.getBroadphaseHandle());
    return pair != nullptr ? pair->m_algorithm : nullptr;
  };
  const btCollisionAlgorithm* const before = algorithm();
  ASSERT_NE(before, nullptr);
  for (const btScalar x : {btScalar(50), btScalar(0.5)}) {
    ghost.getWorldTransform().setOrigin(btVector3(x, 0, 0));
    one.world.updateSingleAabb(&ghost);
    EXPECT_EQ(algorithm(), before);
  }
  one.world.performDiscreteCollisionDetection();
  EXPECT_EQ(algorithm(), before);
  one.world.removeCollisionObject(&object);
  one.world.removeCollisionObject(&ghost);
}

constexpr btScalar kEndOfStairs = btScalar(11.5);

/// A character in a small level: a wall ahead, stairs next to it, and a trigger.
class Level {
 public:
  explicit Level(std::unique_ptr<btBroadphaseInterface> broadphase)
      : dispatcher_(&configuration_),
        broadphase_(std::move(broadphase)),
        world_(&dispatcher_, broadphase_.get(), &solver_, &configuration_) {
    broadphase_->getOverlappingPairCache()->setInternalGhostPairCallback(&callback_);
    addBox(btVector3(20, 1, 20), btVector3(0, -1, 0));
    addBox(btVector3(10, 3, btScalar(0.5)), btVector3(0, 3, 5));
    for (int i = 0; i < 6; ++i)
      addBox(btVector3(btScalar(0.5), btScalar(0.15), 3),
             btVector3(6 + btScalar(i), btScalar(0.15) + btScalar(0.3) * btScalar(i), 2));
    trigger_.setCollisionShape(&triggerShape_);
    trigger_.getWorldTransform().setOrigin(btVector3(-3, 1, 4));
    trigger_.setCollisionFlags(btCollisionObject::CF_NO_CONTACT_RESPONSE);
    world_.addCollisionObject(&trigger_, btBroadphaseProxy::SensorTrigger,
                              btBroadphaseProxy::CharacterFilter);
    ghost_.setCollisionShape(&capsule_);
    // The controller's constructor has rotated the ghost from z up to y up. Undoes this rotation.
    ghost_.setWorldTransform(
        btTransform(btQuaternion::getIdentity(), btVector3(-6, btScalar(0.9), 0)));
    ghost_.setCollisionFlags(btCollisionObject::CF_CHARACTER_OBJECT);
    world_.addCollisionObject(&ghost_, btBroadphaseProxy::CharacterFilter, -1);
    controller_.setGravity(btVector3(0, -10, 0));
    world_.addAction(&controller_);
  }
  ~Level() {
    world_.removeAction(&controller_);
    world_.removeCollisionObject(&ghost_);
    world_.removeCollisionObject(&trigger_);
    for (auto& body : bodies_) world_.removeCollisionObject(body.get());
  }

  /// Runs step i of the character's walk: through the trigger to the wall, along the wall, up the
  /// stairs and down.
  void step(int i, btScalar speed) {
    const btVector3 walk = i * speed < 6 ? btVector3(btScalar(0.5), 0, 1) : btVector3(1, 0, 0);
    controller_.setWalkDirection(walk * speed);
    world_.stepSimulation(btScalar(1) / 60, 0);
  }
  btVector3 place() const { return ghost_.getWorldTransform().getOrigin(); }
  bool isInTrigger() const { return trigger_.getNumOverlappingObjects() > 0; }

 private:
  void addBox(const btVector3& half, const btVector3& place) {
    shapes_.push_back(std::make_unique<btBoxShape>(half));
    bodies_.push_back(std::make_unique<btCollisionObject>());
    bodies_.back()->setCollisionShape(shapes_.back().get());
    bodies_.back()->getWorldTransform().setOrigin(place);
    world_.addCollisionObject(bodies_.back().get(), btBroadphaseProxy::StaticFilter,
                              btBroadphaseProxy::AllFilter ^ btBroadphaseProxy::StaticFilter);
  }

  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_;
  btGhostPairCallback callback_;
  std::unique_ptr<btBroadphaseInterface> broadphase_;
  btSequentialImpulseConstraintSolver solver_;
  btDiscreteDynamicsWorld world_;
  btBoxShape triggerShape_{btVector3(1, 1, 1)};
  btCapsuleShape capsule_{btScalar(0.4), 1};
  btGhostObject trigger_;
  btPairCachingGhostObject ghost_;
  std::vector<std::unique_ptr<btBoxShape>> shapes_;
  std::vector<std::unique_ptr<btCollisionObject>> bodies_;
  btKinematicCharacterController controller_{&ghost_, &capsule_, btScalar(0.35),
                                             btVector3(0, 1, 0)};
};

// While the character walks, its positions with both broad phases are equal bit for bit. But
// btDbvtBroadphase fattens its boxes: a falling character may touch the ground a step earlier, and
// leaves a trigger later.
TEST(AdapterGhosts, ACharacterWalksAsWithDbvt) {
  for (const btScalar speed : {btScalar(0.03), btScalar(0.1)}) {
    Level ours(std::make_unique<GpuLbvhBroadphase>());
    Level theirs(std::make_unique<btDbvtBroadphase>());
    int stepsInTrigger = 0;
    btScalar highest = 0;
    for (int i = 0; i < 1000 && ours.place().x() < 19; ++i) {
      SCOPED_TRACE(i);
      ours.step(i, speed);
      theirs.step(i, speed);
      if (ours.place().x() < kEndOfStairs)
        ASSERT_EQ(ours.place(), theirs.place()) << "speed " << speed;
      else
        ASSERT_LT((ours.place() - theirs.place()).length(), 0.15) << "speed " << speed;
      if (ours.isInTrigger()) ASSERT_TRUE(theirs.isInTrigger());
      stepsInTrigger += ours.isInTrigger();
      highest = btMax(highest, ours.place().y());
    }
    EXPECT_GT(stepsInTrigger, 20);
    EXPECT_GT(highest, 2.5) << "not up the stairs";
    EXPECT_LT(ours.place().z(), 4.2) << "through the wall";
    EXPECT_NEAR(ours.place().y(), theirs.place().y(), 1e-5) << "not down again";
  }
}

}  // namespace
