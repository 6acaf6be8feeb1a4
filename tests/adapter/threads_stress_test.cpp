// SPDX-License-Identifier: Zlib
// Builds, steps, queries and destroys worlds and finders on different threads, many at once.
// Written for ThreadSanitizer. Every run is also compared with the same run on one thread.
#include <BulletCollision/CollisionDispatch/btCollisionDispatcherMt.h>
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <BulletDynamics/ConstraintSolver/btSequentialImpulseConstraintSolverMt.h>
#include <BulletDynamics/Dynamics/btDiscreteDynamicsWorldMt.h>
#include <LinearMath/btThreads.h>
#include <btBulletDynamicsCommon.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "GpuLbvhBroadphase.h"
#include "broadphase/tree_query.h"
#include "support.h"

#if defined(__SANITIZE_THREAD__)
// oneTBB is not instrumented, so memory that it passes between threads looks like a race.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libtbb.so"; }
#endif

namespace {

using lbvh::test::Random;
using Job = std::function<void()>;
using Trace = std::vector<std::uint64_t>;  // hashes of results

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// Calls f(0) to f(n - 1), each on its own thread.
template <class F>
void together(int n, const F& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

/// Runs parts of a test either on new threads or on the calling thread.
struct Threads {
  bool isMany;

  /// Runs the job on a new thread, or on the calling thread.
  void run(const Job& job) const {
    if (isMany) return together(1, [&](int) { job(); });
    job();
  }
  template <class F>
  void runAll(int n, const F& f) const {
    if (isMany) return together(n, f);
    for (int i = 0; i < n; ++i) f(i);
  }
};

struct Settings {
  lbvh::Backend backend;
  int threads;
  btScalar margin;
  bool hasOwnCache;
};

const Settings kSettings[] = {
    {lbvh::Backend::host, 1, 0, true},
    {lbvh::Backend::host, 2, 0, true},
    {lbvh::Backend::host, 3, btScalar(0.05), true},
    {lbvh::Backend::automatic, 4, 0, false},
};
constexpr int kSettingsCount = static_cast<int>(std::size(kSettings));

GpuLbvhOptions optionsOf(const Settings& settings) {
  GpuLbvhOptions options;
  options.backend = settings.backend;
  options.threads = settings.threads;
  options.margin = settings.margin;
  return options;
}

/// Sums hashes of the proxies that a query visits, so that the order of the visits does not matter.
template <class Callback>
struct Sum : Callback {
  bool process(const btBroadphaseProxy* proxy) override {
    sum += mixed(1, static_cast<std::uint64_t>(proxy->m_uniqueId));
    return true;
  }
  std::uint64_t sum = 0;
};

struct ContactCount : btCollisionWorld::ContactResultCallback {
  btScalar addSingleResult(btManifoldPoint&, const btCollisionObjectWrapper*, int, int,
                           const btCollisionObjectWrapper*, int, int) override {
    ++count;
    return 0;
  }
  std::uint64_t count = 0;
};

/// The bodies of every world here: the ground, and boxes and balls that fall fast. In each step
/// Bullet sweeps the fast bodies with the broad phase's rayTest.
class Bodies {
 public:
  void addTo(btDiscreteDynamicsWorld& world, std::uint32_t seed) {
    Random random(seed);
    add(world, 0, ground_, btVector3(0, 0, 0));
    for (int i = 0; i < kCount; ++i) {
      const btScalar x = random.uniform(-5, 5), y = random.uniform(1, 9), z = random.uniform(-5, 5);
      add(world, 1, i % 2 == 0 ? static_cast<btCollisionShape&>(box_) : ball_, btVector3(x, y, z));
      all.back()->setLinearVelocity(btVector3(0, -30, 0));
      all.back()->setCcdMotionThreshold(btScalar(0.1));
      all.back()->setCcdSweptSphereRadius(btScalar(0.2));
    }
  }
  void removeFrom(btDiscreteDynamicsWorld& world) {
    for (const auto& body : all) world.removeRigidBody(body.get());
    all.clear();
  }

  std::vector<std::unique_ptr<btRigidBody>> all;

 private:
  static constexpr int kCount = 250;

  void add(btDiscreteDynamicsWorld& world, btScalar mass, btCollisionShape& shape,
           const btVector3& place) {
    btVector3 inertia(0, 0, 0);
    if (mass > 0) shape.calculateLocalInertia(mass, inertia);
    btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
    info.m_startWorldTransform.setOrigin(place);
    all.push_back(std::make_unique<btRigidBody>(info));
    world.addRigidBody(all.back().get());
  }

  btStaticPlaneShape ground_{btVector3(0, 1, 0), 0};
  btBoxShape box_{btVector3(btScalar(0.3), btScalar(0.3), btScalar(0.3))};
  btSphereShape ball_{btScalar(0.3)};
};

/// Queries a world with rays, boxes and sweeps. This is safe on any thread while the world is not
/// changed.
std::uint64_t ask(btDiscreteDynamicsWorld& world, std::uint32_t seed) {
  Random random(seed);
  const auto point = [&] {
    const btScalar x = random.uniform(-6, 6), y = random.uniform(0, 9), z = random.uniform(-6, 6);
    return btVector3(x, y, z);
  };
  std::uint64_t hash = 0;
  const btSphereShape ball(btScalar(0.2));
  for (int i = 0; i < 8; ++i) {
    const btVector3 from = point(), to = point(), corner = point();
    Sum<btBroadphaseAabbCallback> inBox;
    world.getBroadphase()->aabbTest(corner, corner + btVector3(2, 2, 2), inBox);
    btCollisionWorld::AllHitsRayResultCallback onRay(from, to);
    world.rayTest(from, to, onRay);
    btCollisionWorld::ClosestConvexResultCallback onSweep(from, to);
    world.convexSweepTest(&ball, btTransform(btQuaternion::getIdentity(), from),
                          btTransform(btQuaternion::getIdentity(), to), onSweep);
    hash = mixed(hash, inBox.sum);
    hash = mixed(hash, static_cast<std::uint64_t>(onRay.m_collisionObjects.size()));
    hash = mixed(hash, std::bit_cast<std::uint32_t>(float(onSweep.m_closestHitFraction)));
  }
  return hash;
}

class World {
 public:
  explicit World(const Settings& settings)
      : broadphase_(optionsOf(settings), settings.hasOwnCache ? nullptr : &handedIn_) {
    world_.getPairCache()->setInternalGhostPairCallback(&ghostPairs_);
    ghost_.setCollisionShape(&room_);
    ghost_.setCollisionFlags(btCollisionObject::CF_NO_CONTACT_RESPONSE);
    ghost_.setWorldTransform(btTransform(btQuaternion::getIdentity(), btVector3(0, 2, 0)));
    world_.addCollisionObject(&ghost_);
    bodies_.addTo(world_, static_cast<std::uint32_t>(1 + settings.threads));
  }
  ~World() {
    bodies_.removeFrom(world_);
    world_.removeCollisionObject(&ghost_);
  }

  void step() { world_.stepSimulation(btScalar(1) / 60, 0); }

  /// Lifts so many bodies that the next query packs all boxes again.
  void lift() {
    for (std::size_t i = 1; i < bodies_.all.size(); i += 2) {
      bodies_.all[i]->translate(btVector3(0, 1, 0));
      world_.updateSingleAabb(bodies_.all[i].get());
    }
  }

  std::uint64_t answers(int who) {
    std::uint64_t hash = ask(world_, static_cast<std::uint32_t>(who));
    if (who != 0) return hash;
    // Only one thread goes on, because contactTest allocates from the dispatcher's pools, which
    // have no lock.
    ContactCount contacts;
    world_.contactTest(bodies_.all[1].get(), contacts);
    return mixed(hash, contacts.count);
  }

  btDiscreteDynamicsWorld& bullet() { return world_; }

  std::uint64_t state() {
    std::uint64_t hash = static_cast<std::uint64_t>(ghost_.getNumOverlappingObjects());
    const btBroadphasePairArray& pairs = world_.getPairCache()->getOverlappingPairArray();
    for (int i = 0; i < pairs.size(); ++i) {
      hash = mixed(hash, static_cast<std::uint64_t>(pairs[i].m_pProxy0->m_uniqueId));
      hash = mixed(hash, static_cast<std::uint64_t>(pairs[i].m_pProxy1->m_uniqueId));
    }
    for (const auto& body : bodies_.all)
      for (int axis = 0; axis < 3; ++axis)
        hash = mixed(
            hash, std::bit_cast<std::uint32_t>(float(body->getWorldTransform().getOrigin()[axis])));
    return hash;
  }

 private:
  btHashedOverlappingPairCache handedIn_;
  btGhostPairCallback ghostPairs_;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btSequentialImpulseConstraintSolver solver_;
  GpuLbvhBroadphase broadphase_;
  btDiscreteDynamicsWorld world_{&dispatcher_, &broadphase_, &solver_, &configuration_};
  btBoxShape room_{btVector3(2, 2, 2)};
  btPairCachingGhostObject ghost_;
  Bodies bodies_;
};

Trace courseOfWorld(const Settings& settings, Threads threads) {
  Trace trace;
  std::unique_ptr<World> world;
  threads.run([&] { world = std::make_unique<World>(settings); });
  for (int step = 0; step < 12; ++step) {
    threads.run([&] { world->step(); });
    if (step % 3 == 2) threads.run([&] { world->lift(); });
    std::uint64_t answers[4];
    threads.runAll(4, [&](int who) { answers[who] = world->answers(who); });
    trace.insert(trace.end(), answers, answers + 4);
    threads.run([&] { trace.push_back(world->state()); });
  }
  threads.run([&] { world.reset(); });
  return trace;
}

/// Creates a finder, runs steps and destroys it, without Bullet. At least half of the boxes rest in
/// each step, so a step searches only for the pairs of the others.
Trace courseOfFinder(const Settings& settings, Threads threads) {
  Trace trace;
  Random random(static_cast<std::uint32_t>(20 + settings.threads));
  lbvh::test::Boxes boxes = lbvh::test::boxSets()[0].make(3000, random);
  std::unique_ptr<lbvh::PairFinder> finder;
  threads.run([&] { finder = std::make_unique<lbvh::PairFinder>(optionsOf(settings)); });
  const lbvh::View<const lbvh::Aabb> view = lbvh::test::view(boxes);
  for (int step = 0; step < 12; ++step) {
    for (std::size_t i = 0; i < boxes.size(); i += step % 4 == 0 ? 2 : 50)
      boxes[i] = boxes[random.below(3000)];
    threads.run([&] { finder->update(view); });
    std::uint64_t hash = 0;
    for (const auto list : {finder->pairs(), finder->added(), finder->removed()})
      for (const lbvh::Pair pair : list) hash = mixed(mixed(hash, pair.first), pair.second);
    trace.push_back(hash);
    std::size_t found[3];
    threads.runAll(3, [&](int who) {
      lbvh::BoxTree tree(1 + who);
      tree.build(view);
      lbvh::BatchHits hits;
      tree.aabbTest({boxes.data(), 200}, hits);
      found[who] = hits.boxes.size();
    });
    trace.insert(trace.end(), found, found + 3);
    threads.run([&] { finder = std::make_unique<lbvh::PairFinder>(std::move(*finder)); });
  }
  threads.run([&] { finder.reset(); });
  return trace;
}

using Course = Trace (*)(const Settings&, Threads);

/// Runs each setting's course on one thread, then all courses at once, each on many threads.
/// Compares the results.
void expectSameOnManyThreads(Course course) {
  std::vector<Trace> alone, together_(kSettingsCount);
  for (const Settings& settings : kSettings) alone.push_back(course(settings, Threads{false}));
  together(kSettingsCount, [&](int i) { together_[i] = course(kSettings[i], Threads{true}); });
  for (int i = 0; i < kSettingsCount; ++i) EXPECT_EQ(together_[i], alone[i]) << "settings " << i;
}

TEST(ThreadsStress, WorldsAreUsedFromManyThreads) { expectSameOnManyThreads(courseOfWorld); }

TEST(ThreadsStress, FindersAreUsedFromManyThreads) { expectSameOnManyThreads(courseOfFinder); }

/// Dispatches the pairs as btCollisionDispatcherMt does. Each thread takes a slice of the raw
/// array, reads the two objects of each pair and writes to the pair.
std::uint64_t dispatchOn(int threads, btOverlappingPairCache& cache, Threads on) {
  const auto n = static_cast<std::size_t>(cache.getNumOverlappingPairs());
  btBroadphasePair* pairs = cache.getOverlappingPairArrayPtr();
  const auto parts = static_cast<std::size_t>(threads);
  on.runAll(threads, [&](int thread) {
    const auto part = static_cast<std::size_t>(thread);
    for (std::size_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
      const auto* a = static_cast<const btCollisionObject*>(pairs[i].m_pProxy0->m_clientObject);
      const auto* b = static_cast<const btCollisionObject*>(pairs[i].m_pProxy1->m_clientObject);
      pairs[i].m_internalTmpValue =
          a->getBroadphaseHandle()->m_uniqueId + 2 * b->getBroadphaseHandle()->m_uniqueId;
    }
  });
  std::uint64_t hash = n;
  for (std::size_t i = 0; i < n; ++i)
    hash = mixed(hash, static_cast<std::uint64_t>(pairs[i].m_internalTmpValue));
  return hash;
}

// Uses a broad phase as btDiscreteDynamicsWorldMt and its dispatcher do on their threads. The test
// also runs with a Bullet that was built without threads, such as Debian's.
TEST(ThreadsStress, PairsAreDispatchedAndBodiesSweptOnManyThreads) {
  Trace traces[2];
  for (const bool isMany : {false, true}) {
    World world(kSettings[1]);
    for (int step = 0; step < 20; ++step) {
      world.step();
      std::uint64_t swept[4];
      for (std::uint32_t phase = 0; phase < 2; ++phase) {  // predictive contacts; integration
        Threads{isMany}.runAll(4, [&](int i) { swept[i] = ask(world.bullet(), phase * 4 + i); });
        traces[isMany].insert(traces[isMany].end(), swept, swept + 4);
        btOverlappingPairCache& cache = *world.bullet().getPairCache();
        traces[isMany].push_back(dispatchOn(4, cache, Threads{isMany}));
      }
    }
  }
  EXPECT_EQ(traces[1], traces[0]);
}

/// Runs btDiscreteDynamicsWorldMt on Bullet's own threads.
class MtWorld {
 public:
  explicit MtWorld(const Settings& settings) : broadphase_(optionsOf(settings)) {
    bodies_.addTo(world_, 40);
  }
  ~MtWorld() { bodies_.removeFrom(world_); }

  void step() { world_.stepSimulation(btScalar(1) / 60, 0, btScalar(1) / 60); }
  btDiscreteDynamicsWorld& bullet() { return world_; }

  void expectPairsExact() {
    world_.updateAabbs();
    world_.computeOverlappingPairs();
    btOverlappingPairCache& cache = *world_.getPairCache();
    int expected = 0;
    for (std::size_t i = 0; i < bodies_.all.size(); ++i)
      for (std::size_t j = i + 1; j < bodies_.all.size(); ++j) {
        btBroadphaseProxy *a = bodies_.all[i]->getBroadphaseHandle(),
                          *b = bodies_.all[j]->getBroadphaseHandle();
        if (!TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax)) continue;
        ++expected;
        ASSERT_NE(cache.findPair(a, b), nullptr);
      }
    ASSERT_EQ(cache.getNumOverlappingPairs(), expected);
    ASSERT_GT(expected, 100);
  }

 private:
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcherMt dispatcher_{&configuration_};
  btConstraintSolverPoolMt solvers_{4};
  btSequentialImpulseConstraintSolverMt solver_;
  GpuLbvhBroadphase broadphase_;
  btDiscreteDynamicsWorldMt world_{&dispatcher_, &broadphase_, &solvers_, &solver_,
                                   &configuration_};
  Bodies bodies_;
};

TEST(ThreadsStress, MtWorldOnBulletsThreads) {
  const std::unique_ptr<btITaskScheduler> scheduler(btCreateDefaultTaskScheduler());
  if (scheduler == nullptr) GTEST_SKIP() << "this Bullet was built without threads (BT_THREADSAFE)";
  btSetTaskScheduler(scheduler.get());
  scheduler->setNumThreads(4);
  for (const Settings& settings : {kSettings[0], kSettings[1]}) {
    MtWorld world(settings);
    for (int step = 0; step < 30; ++step) {
      world.step();
      world.expectPairsExact();
      std::uint64_t together_[3];
      together(3, [&](int i) { together_[i] = ask(world.bullet(), 7); });
      for (const std::uint64_t answer : together_) ASSERT_EQ(answer, ask(world.bullet(), 7));
    }
  }
  btSetTaskScheduler(btGetSequentialTaskScheduler());
}

}  // namespace
