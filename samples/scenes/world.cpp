// SPDX-License-Identifier: Zlib
// Implements the World's ownership and timing. Times the parts of a step by overriding
// Bullet's virtual functions. This needs neither changes in Bullet nor a profiler.
#include "scenes/world.h"

#include <BulletCollision/CollisionDispatch/btCollisionDispatcherMt.h>
#include <BulletDynamics/ConstraintSolver/btSequentialImpulseConstraintSolverMt.h>
#include <BulletDynamics/Dynamics/btDiscreteDynamicsWorldMt.h>
#include <BulletSoftBody/btSoftBodyRigidBodyCollisionConfiguration.h>
#include <BulletSoftBody/btSoftRigidDynamicsWorld.h>
#include <LinearMath/btThreads.h>

#include "migrateBroadphase.h"
#include "support/bit_hash.h"
#include "support/broadphases.h"
#include "support/thread_time.h"
#include "support/timing.h"

/// The timed world, independent of its Bullet class.
class World::TimedWorld {
 public:
  template <class Base>
  class Of;

  virtual ~TimedWorld() = default;
  virtual btDiscreteDynamicsWorld& bullet() = 0;

  StepTimes times;
};

template <class Base>
class World::TimedWorld::Of final : public Base, public TimedWorld {
 public:
  using Base::Base;

  btDiscreteDynamicsWorld& bullet() override { return *this; }

  void updateAabbs() override {
    const ThreadStopwatch cpu;
    const Stopwatch watch;
    Base::updateAabbs();
    times.updateAabbs += watch.milliseconds();
    times.broadphaseCpu += cpu.milliseconds();
  }

  void computeOverlappingPairs() override {
    const ThreadStopwatch cpu;
    const Stopwatch watch;
    Base::computeOverlappingPairs();
    times.calculatePairs += watch.milliseconds();
    times.broadphaseCpu += cpu.milliseconds();
  }

  /// The base class's function calls the two functions above and the narrow phase. So the rest of
  /// its time is spent in the narrow phase.
  void performDiscreteCollisionDetection() override {
    const double before = times.broadphase();
    const Stopwatch watch;
    Base::performDiscreteCollisionDetection();
    times.narrowPhase += watch.milliseconds() - (times.broadphase() - before);
  }

  void solveConstraints(btContactSolverInfo& info) override {
    const Stopwatch watch;
    Base::solveConstraints(info);
    times.solver += watch.milliseconds();
  }
};

namespace {

/// Starts Bullet's threads once; all worlds share them.
/// @return number of threads; 1 if Bullet was built without threads
int startBulletsThreads() {
  static btITaskScheduler* const scheduler = [] {
    btITaskScheduler* const threads = btCreateDefaultTaskScheduler();
    btSetTaskScheduler(threads != nullptr ? threads : btGetSequentialTaskScheduler());
    return btGetTaskScheduler();
  }();
  return scheduler->getNumThreads();
}

}  // namespace

World::World(std::unique_ptr<btBroadphaseInterface> broadphase, bool onBulletsThreads)
    : configuration_(std::make_unique<btSoftBodyRigidBodyCollisionConfiguration>()),
      broadphase_(std::move(broadphase)) {
  if (onBulletsThreads) {
    solvers_ = std::make_unique<btConstraintSolverPoolMt>(startBulletsThreads());
    dispatcher_ = std::make_unique<btCollisionDispatcherMt>(configuration_.get());
    auto solver = std::make_unique<btSequentialImpulseConstraintSolverMt>();
    timed_ = std::make_unique<TimedWorld::Of<btDiscreteDynamicsWorldMt>>(
        dispatcher_.get(), broadphase_.get(), solvers_.get(), solver.get(), configuration_.get());
    solver_ = std::move(solver);
  } else {
    dispatcher_ = std::make_unique<btCollisionDispatcher>(configuration_.get());
    solver_ = std::make_unique<btSequentialImpulseConstraintSolver>();
    timed_ = std::make_unique<TimedWorld::Of<btSoftRigidDynamicsWorld>>(
        dispatcher_.get(), broadphase_.get(), solver_.get(), configuration_.get());
  }
  world_ = &timed_->bullet();
  world_->setGravity({0, btScalar(-9.81), 0});
}

World::~World() {
  // Joints must be removed before their bodies. Removes the first joint each time, because Bullet
  // searches its list from the front.
  while (world_->getNumConstraints() > 0) world_->removeConstraint(world_->getConstraint(0));
  // Removes all pairs in one pass. In a large world Bullet's destructor would need seconds.
  removeAllPairs(*broadphase_, dispatcher_.get());
}

btRigidBody& World::addMoving(btCollisionShape& shape, btScalar mass, const btTransform& start) {
  btVector3 inertia(0, 0, 0);
  shape.calculateLocalInertia(mass, inertia);
  btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
  info.m_startWorldTransform = start;
  auto& body = own(std::make_unique<btRigidBody>(info));
  world_->addRigidBody(&body);
  return body;
}

btRigidBody& World::addStatic(btCollisionShape& shape, const btTransform& place) {
  btRigidBody::btRigidBodyConstructionInfo info(0, nullptr, &shape);
  info.m_startWorldTransform = place;
  auto& body = own(std::make_unique<btRigidBody>(info));
  world_->addRigidBody(&body);
  return body;
}

btRigidBody& World::addKinematic(btCollisionShape& shape, const btTransform& start, int group,
                                 int mask) {
  btRigidBody::btRigidBodyConstructionInfo info(0, nullptr, &shape);
  info.m_startWorldTransform = start;
  auto& body = own(std::make_unique<btRigidBody>(info));
  body.setCollisionFlags(btCollisionObject::CF_KINEMATIC_OBJECT);
  body.setActivationState(DISABLE_DEACTIVATION);
  world_->addRigidBody(&body, group, mask);
  return body;
}

btPairCachingGhostObject& World::addGhost(btCollisionShape& shape, const btTransform& place,
                                          int flags, int group, int mask) {
  if (!ghostCallback_) ghostCallback_ = std::make_unique<btGhostPairCallback>();
  broadphase_->getOverlappingPairCache()->setInternalGhostPairCallback(ghostCallback_.get());
  auto& ghost = own(std::make_unique<btPairCachingGhostObject>());
  ghost.setCollisionShape(&shape);
  ghost.setWorldTransform(place);
  ghost.setCollisionFlags(flags);
  world_->addCollisionObject(&ghost, group, mask);
  return ghost;
}

btSoftBody& World::add(std::unique_ptr<btSoftBody> body) {
  softWorld().addSoftBody(body.get());
  return own(std::move(body));
}

void World::add(std::unique_ptr<btTypedConstraint> joint) {
  world_->addConstraint(joint.get(), true);
  // Some broad phases find pairs when objects are added. So the two bodies may already be a pair.
  broadphase_->getOverlappingPairCache()->removeOverlappingPair(
      joint->getRigidBodyA().getBroadphaseProxy(), joint->getRigidBodyB().getBroadphaseProxy(),
      dispatcher_.get());
  joints_.push_back(std::move(joint));
}

void World::add(std::unique_ptr<btActionInterface> action) {
  world_->addAction(action.get());
  actions_.push_back(std::move(action));
}

void World::setFilter(std::unique_ptr<btOverlapFilterCallback> filter) {
  filter_ = std::move(filter);
  broadphase_->getOverlappingPairCache()->setOverlapFilterCallback(filter_.get());
}

void World::beforeEachStep(std::function<void(int step)> callback) {
  beforeStep_ = std::move(callback);
}

void World::step() {
  if (beforeStep_) beforeStep_(steps_);
  if (isKeptAwake_) wakeAll();
  ++steps_;
  timed_->times = {};
  const Stopwatch watch;
  world_->stepSimulation(btScalar(1) / 60, 0);
  timed_->times.step = watch.milliseconds();
}

/// Runs in each step, because a scene can reactivate an object in a state that allows sleeping.
void World::wakeAll() {
  const btCollisionObjectArray& objects = world_->getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i)
    if (!objects[i]->isStaticObject()) objects[i]->setActivationState(DISABLE_DEACTIVATION);
}

const StepTimes& World::times() const { return timed_->times; }

void World::setBroadphase(std::unique_ptr<btBroadphaseInterface> broadphase) {
  migrateBroadphase(world_, broadphase.get(), ghostCallback_.get());
  broadphase_ = std::move(broadphase);
}

int World::pairs() const {
  return broadphase_->getOverlappingPairCache()->getNumOverlappingPairs();
}

std::uint64_t World::hash() const {
  BitHash hash;
  const auto add = [&hash](const btVector3& v) {
    for (int axis = 0; axis < 3; ++axis) hash.add(v[axis]);
  };
  const btCollisionObjectArray& objects = world_->getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    const btTransform& place = objects[i]->getWorldTransform();
    add(place.getOrigin());
    for (int row = 0; row < 3; ++row) add(place.getBasis()[row]);
    if (const btSoftBody* soft = btSoftBody::upcast(objects[i]))
      for (int node = 0; node < soft->m_nodes.size(); ++node) add(soft->m_nodes[node].m_x);
  }
  return hash.value();
}

int World::objects() const { return world_->getNumCollisionObjects(); }

int World::staticObjects() const {
  const btCollisionObjectArray& objects = world_->getCollisionObjectArray();
  int count = 0;
  for (int i = 0; i < objects.size(); ++i) count += objects[i]->isStaticObject();
  return count;
}

std::vector<lbvh::Aabb> World::boxes() {
  std::vector<lbvh::Aabb> boxes;
  const btCollisionObjectArray& objects = bullet().getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    btVector3 low;
    btVector3 high;
    broadphase_->getAabb(objects[i]->getBroadphaseHandle(), low, high);
    boxes.push_back({{float(low.x()), float(low.y()), float(low.z())},
                     {float(high.x()), float(high.y()), float(high.z())}});
  }
  return boxes;
}

btDiscreteDynamicsWorld& World::bullet() { return *world_; }
btSoftBodyWorldInfo& World::softInfo() { return softWorld().getWorldInfo(); }

btSoftRigidDynamicsWorld& World::softWorld() {
  return dynamic_cast<btSoftRigidDynamicsWorld&>(*world_);
}
