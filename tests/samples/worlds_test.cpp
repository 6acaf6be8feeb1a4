// SPDX-License-Identifier: Zlib
// Tests every kind of Bullet world, with our broad phase and with btDbvtBroadphase. Our pairs must
// be exact in each step, and objects must end at the same positions with both broad phases.
#include <BulletCollision/CollisionDispatch/btCollisionDispatcherMt.h>
#include <BulletDynamics/ConstraintSolver/btSequentialImpulseConstraintSolverMt.h>
#include <BulletDynamics/Dynamics/btDiscreteDynamicsWorldMt.h>
#include <BulletDynamics/Dynamics/btSimpleDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBody.h>
#include <BulletDynamics/Featherstone/btMultiBodyConstraintSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBodyLinkCollider.h>
#include <BulletSoftBody/btSoftBodyHelpers.h>
#include <BulletSoftBody/btSoftBodyRigidBodyCollisionConfiguration.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>
#include <LinearMath/btThreads.h>
#include <btBulletDynamicsCommon.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "GpuLbvhBroadphase.h"
#if defined(HAS_WORLD_IMPORTER)
#include <BulletWorldImporter/btBulletWorldImporter.h>
#endif

namespace {

const btScalar kHalf = btScalar(0.5);

/// A world with objects. Owns everything except the broad phase, which must outlive it.
class Rig {
 public:
  virtual ~Rig() = default;
  virtual btCollisionWorld& world() = 0;
  virtual void step() = 0;

  /// The positions of all objects. Overrides add more values to compare.
  virtual std::vector<btVector3> places() {
    std::vector<btVector3> places;
    const btCollisionObjectArray& objects = world().getCollisionObjectArray();
    for (int i = 0; i < objects.size(); ++i)
      places.push_back(objects[i]->getWorldTransform().getOrigin());
    return places;
  }
};

using RigOwner = std::unique_ptr<Rig>;

/// A dynamics world with a plane, boxes on it, and a sphere on each box. The boxes are so far apart
/// that the motion of one does not depend on the order of the others.
template <class BulletWorld>
class DynamicRig : public Rig {
 public:
  btCollisionWorld& world() override { return *bullet; }
  void step() override { bullet->stepSimulation(btScalar(1) / 60, 0, btScalar(1) / 60); }

 protected:
  /// Destructors call this function to destroy the world before its parts.
  void clear() {
    for (const auto& body : bodies_) bullet->removeRigidBody(body.get());
    bodies_.clear();
    bullet.reset();
  }

  void furnish() {
    add(0, plane_, btVector3(0, 0, 0));
    for (int i = 0; i < 25; ++i) {
      const btScalar x = btScalar(i % 5) * 2, z = btScalar(i / 5) * 2, lift = btScalar(0.1 * i);
      add(1, box_, btVector3(x, kHalf + lift, z));
      add(1, ball_, btVector3(x, btScalar(1.6) + lift, z));
    }
  }

  void add(btScalar mass, btCollisionShape& shape, const btVector3& place) {
    btVector3 inertia(0, 0, 0);
    if (mass > 0) shape.calculateLocalInertia(mass, inertia);
    btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
    info.m_startWorldTransform.setOrigin(place);
    bodies_.push_back(std::make_unique<btRigidBody>(info));
    bullet->addRigidBody(bodies_.back().get());
  }

  btStaticPlaneShape plane_{btVector3(0, 1, 0), 0};
  btBoxShape box_{btVector3(kHalf, kHalf, kHalf)};
  btSphereShape ball_{kHalf};
  std::vector<std::unique_ptr<btRigidBody>> bodies_;
  std::unique_ptr<BulletWorld> bullet;
};

/// The parts of most worlds.
struct Parts {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btSequentialImpulseConstraintSolver solver;
};

template <class BulletWorld>
class PlainRig : private Parts, public DynamicRig<BulletWorld> {
 public:
  explicit PlainRig(btBroadphaseInterface& broadphase) {
    this->bullet = std::make_unique<BulletWorld>(&dispatcher, &broadphase, &solver, &configuration);
    this->bullet->setGravity(btVector3(0, -10, 0));
    this->furnish();
  }
  ~PlainRig() override { this->clear(); }
};

/// Uses Bullet's threads if Bullet was built with them (BT_THREADSAFE; Debian's is not). Otherwise
/// the same code runs on one thread.
class MtRig : public DynamicRig<btDiscreteDynamicsWorldMt> {
 public:
  explicit MtRig(btBroadphaseInterface& broadphase) {
    bullet = std::make_unique<btDiscreteDynamicsWorldMt>(&dispatcher_, &broadphase, &solvers_,
                                                         &solver_, &configuration_);
    furnish();
  }
  ~MtRig() override { clear(); }

  static btITaskScheduler* scheduler() {
    static btITaskScheduler* const threads = btCreateDefaultTaskScheduler();
    return threads != nullptr ? threads : btGetSequentialTaskScheduler();
  }

 private:
  struct Threads {
    Threads() {
      btSetTaskScheduler(scheduler());
      scheduler()->setNumThreads(std::min(4, scheduler()->getMaxNumThreads()));
    }
  };
  Threads threads_;  // must come first, because the dispatcher reads the number of threads
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcherMt dispatcher_{&configuration_};
  btConstraintSolverPoolMt solvers_{4};
  btSequentialImpulseConstraintSolverMt solver_;
};

/// A DynamicRig with two soft balls that fall on fixed boxes.
class SoftRig : public DynamicRig<btSoftRigidDynamicsWorld> {
 public:
  explicit SoftRig(btBroadphaseInterface& broadphase) {
    bullet = std::make_unique<btSoftRigidDynamicsWorld>(&dispatcher_, &broadphase, &solver_,
                                                        &configuration_);
    furnish();
    for (int i = 0; i < 2; ++i) {
      const btScalar x = btScalar(-4 * (i + 1));
      add(0, box_, btVector3(x, kHalf, 0));
      const btVector3 centre(x, 3, 0);
      soft_[i].reset(btSoftBodyHelpers::CreateEllipsoid(bullet->getWorldInfo(), centre,
                                                        btVector3(1, 1, 1), 64));
      soft_[i]->m_materials[0]->m_kLST = kHalf;
      soft_[i]->m_cfg.kDF = 1;
      bullet->addSoftBody(soft_[i].get());
    }
  }
  ~SoftRig() override {
    for (const auto& body : soft_) bullet->removeSoftBody(body.get());
    clear();
  }

  std::vector<btVector3> places() override {
    std::vector<btVector3> places = Rig::places();
    for (const auto& body : soft_) {
      btVector3 low, high;
      body->getAabb(low, high);
      places.push_back(low);
      places.push_back(high);
    }
    return places;
  }

 private:
  btSoftBodyRigidBodyCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btSequentialImpulseConstraintSolver solver_;
  std::unique_ptr<btSoftBody> soft_[2];
};

/// A DynamicRig with a chain of links that hangs from a fixed base between the boxes.
class MultiBodyRig : public DynamicRig<btMultiBodyDynamicsWorld> {
 public:
  explicit MultiBodyRig(btBroadphaseInterface& broadphase) {
    bullet = std::make_unique<btMultiBodyDynamicsWorld>(&dispatcher_, &broadphase, &solver_,
                                                        &configuration_);
    furnish();
    const btVector3 inertia(btScalar(0.1), btScalar(0.1), btScalar(0.1));
    for (int i = 0; i < kLinks; ++i)
      chain_.setupRevolute(i, 1, inertia, i - 1, btQuaternion::getIdentity(), btVector3(0, 0, 1),
                           btVector3(0, btScalar(-0.4), 0), btVector3(0, btScalar(-0.4), 0), true);
    chain_.finalizeMultiDof();
    chain_.setBasePos(btVector3(1, 5, 1));
    chain_.setJointPos(0, btScalar(1));
    bullet->addMultiBody(&chain_);
    btAlignedObjectArray<btQuaternion> rotations;
    btAlignedObjectArray<btVector3> origins;
    chain_.forwardKinematics(rotations, origins);
    for (int i = 0; i < kLinks; ++i) {
      colliders_[i] = std::make_unique<btMultiBodyLinkCollider>(&chain_, i);
      colliders_[i]->setCollisionShape(&link_);
      chain_.getLink(i).m_collider = colliders_[i].get();
    }
    chain_.updateCollisionObjectWorldTransforms(rotations, origins);
    for (const auto& collider : colliders_) bullet->addCollisionObject(collider.get(), 2, 1 + 2);
  }
  ~MultiBodyRig() override {
    for (const auto& collider : colliders_) bullet->removeCollisionObject(collider.get());
    bullet->removeMultiBody(&chain_);
    clear();
  }

 private:
  static constexpr int kLinks = 6;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btMultiBodyConstraintSolver solver_;
  btMultiBody chain_{kLinks, 0, btVector3(0, 0, 0), true, false};
  btBoxShape link_{btVector3(btScalar(0.1), btScalar(0.3), btScalar(0.1))};
  std::unique_ptr<btMultiBodyLinkCollider> colliders_[kLinks];
};

/// A btCollisionWorld without dynamics. Its user moves objects and queries contacts.
class CollisionRig : public Rig {
 public:
  explicit CollisionRig(btBroadphaseInterface& broadphase)
      : bullet_(&dispatcher_, &broadphase, &configuration_) {
    for (int i = 0; i < 60; ++i) {
      balls_.push_back(std::make_unique<btCollisionObject>());
      balls_.back()->setCollisionShape(&ball_);
      bullet_.addCollisionObject(balls_.back().get());
    }
  }
  ~CollisionRig() override {
    for (const auto& ball : balls_) bullet_.removeCollisionObject(ball.get());
  }
  btCollisionWorld& world() override { return bullet_; }

  /// Moves each ball along its own circle.
  void step() override {
    ++steps_;
    for (std::size_t i = 0; i < balls_.size(); ++i) {
      const btScalar angle = btScalar(steps_) * btScalar(0.02) * btScalar(i % 7);
      balls_[i]->getWorldTransform().setOrigin(btVector3(
          btCos(angle) + btScalar(i % 4) * kHalf, btSin(angle), btScalar(i / 4) * btScalar(0.4)));
    }
    bullet_.performDiscreteCollisionDetection();
  }

  /// The centres, and a vector with two contact counts: the dispatcher's and contactTest's.
  std::vector<btVector3> places() override {
    std::vector<btVector3> places = Rig::places();
    int touching = 0;
    for (int i = 0; i < dispatcher_.getNumManifolds(); ++i)
      touching += dispatcher_.getManifoldByIndexInternal(i)->getNumContacts();
    Counter counter;
    for (const auto& ball : balls_) bullet_.contactTest(ball.get(), counter);
    EXPECT_GT(touching, 20);
    EXPECT_EQ(counter.contacts, 2 * touching);
    places.push_back(btVector3(btScalar(touching), btScalar(counter.contacts), 0));
    return places;
  }

 private:
  struct Counter : btCollisionWorld::ContactResultCallback {
    btScalar addSingleResult(btManifoldPoint&, const btCollisionObjectWrapper*, int, int,
                             const btCollisionObjectWrapper*, int, int) override {
      ++contacts;
      return 0;
    }
    int contacts = 0;
  };

  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btSphereShape ball_{kHalf};
  std::vector<std::unique_ptr<btCollisionObject>> balls_;
  btCollisionWorld bullet_;
  int steps_ = 0;
};

#if defined(HAS_WORLD_IMPORTER)
/// A world that Bullet's serializer wrote and Bullet's importer read.
class ImportedRig : public Rig {
 public:
  explicit ImportedRig(btBroadphaseInterface& broadphase)
      : bullet_(&dispatcher_, &broadphase, &solver_, &configuration_), importer_(&bullet_) {
    btDbvtBroadphase other;
    PlainRig<btDiscreteDynamicsWorld> original(other);
    for (int i = 0; i < 10; ++i) original.step();
    btDefaultSerializer serializer;
    static_cast<btDiscreteDynamicsWorld&>(original.world()).serialize(&serializer);
    std::vector<unsigned char> file(
        serializer.getBufferPointer(),
        serializer.getBufferPointer() + serializer.getCurrentBufferSize());
    EXPECT_TRUE(importer_.loadFileFromMemory(reinterpret_cast<char*>(file.data()),
                                             static_cast<int>(file.size())));
    EXPECT_EQ(bullet_.getNumCollisionObjects(), 51);
  }
  ~ImportedRig() override { importer_.deleteAllData(); }
  btCollisionWorld& world() override { return bullet_; }
  void step() override { bullet_.stepSimulation(btScalar(1) / 60, 0); }

 private:
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_{&configuration_};
  btSequentialImpulseConstraintSolver solver_;
  btDiscreteDynamicsWorld bullet_;
  btBulletWorldImporter importer_;
};
#endif

struct Kind {
  const char* name;
  RigOwner (*make)(btBroadphaseInterface& broadphase);
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

template <class OneRig>
RigOwner make(btBroadphaseInterface& broadphase) {
  return std::make_unique<OneRig>(broadphase);
}

const Kind kKinds[] = {
    {"Collision", make<CollisionRig>},
    {"Simple", make<PlainRig<btSimpleDynamicsWorld>>},
    {"Discrete", make<PlainRig<btDiscreteDynamicsWorld>>},
    {"DiscreteMt", make<MtRig>},
    {"SoftRigid", make<SoftRig>},
    {"MultiBody", make<MultiBodyRig>},
#if defined(HAS_WORLD_IMPORTER)
    {"Imported", make<ImportedRig>},
#endif
};

class EveryWorld : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryWorld, testing::ValuesIn(kKinds),
                         [](const auto& param) { return std::string(param.param.name); });

void expectPairsExact(btCollisionWorld& world) {
  btOverlappingPairCache& cache = *world.getPairCache();
  const btCollisionObjectArray& objects = world.getCollisionObjectArray();
  int expected = 0;
  for (int i = 0; i < objects.size(); ++i)
    for (int j = i + 1; j < objects.size(); ++j) {
      btBroadphaseProxy *a = objects[i]->getBroadphaseHandle(),
                        *b = objects[j]->getBroadphaseHandle();
      if (!TestAabbAgainstAabb2(a->m_aabbMin, a->m_aabbMax, b->m_aabbMin, b->m_aabbMax) ||
          !cache.needsBroadphaseCollision(a, b))
        continue;
      ++expected;
      ASSERT_NE(cache.findPair(a, b), nullptr);
    }
  ASSERT_EQ(cache.getNumOverlappingPairs(), expected);
  ASSERT_GT(expected, 10);
}

// Soft bodies and btSimpleDynamicsWorld set some boxes after a step has found its pairs. So the
// pairs are computed again here.
TEST_P(EveryWorld, PairsAreExact) {
  GpuLbvhBroadphase ours;
  RigOwner rig = GetParam().make(ours);
  for (int step = 0; step < 90; ++step) {
    rig->step();
    rig->world().computeOverlappingPairs();
    expectPairsExact(rig->world());
  }
}

TEST_P(EveryWorld, ObjectsEndWhereTheyDoWithDbvt) {
  GpuLbvhBroadphase ours;
  btDbvtBroadphase dbvt;
  RigOwner rig = GetParam().make(ours), reference = GetParam().make(dbvt);
  for (int step = 0; step < 90; ++step) {
    rig->step();
    reference->step();
  }
  const std::vector<btVector3> places = rig->places(), expected = reference->places();
  ASSERT_EQ(places.size(), expected.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    EXPECT_LT((places[i] - expected[i]).length(), btScalar(0.01)) << i;
}

TEST(Worlds, BulletsOwnThreadsWereUsed) {
  if (MtRig::scheduler() == btGetSequentialTaskScheduler())
    GTEST_SKIP() << "this Bullet was built without threads (BT_THREADSAFE)";
  EXPECT_GT(MtRig::scheduler()->getMaxNumThreads(), 1);
}

}  // namespace
