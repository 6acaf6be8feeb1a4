// World: ownership and timing. Timing is done by overriding Bullet's virtual parts of a step, so
// that it needs no change in Bullet and no profiler.
#include "world.h"

#include <cstring>

#include "broadphases.h"
#include "migrateBroadphase.h"
#include "timing.h"

class World::TimedWorld : public btDiscreteDynamicsWorld {
 public:
  using btDiscreteDynamicsWorld::btDiscreteDynamicsWorld;

  void updateAabbs() override {
    const Stopwatch watch;
    btDiscreteDynamicsWorld::updateAabbs();
    times.updateAabbs += watch.milliseconds();
  }

  void computeOverlappingPairs() override {
    const Stopwatch watch;
    btDiscreteDynamicsWorld::computeOverlappingPairs();
    times.calculatePairs += watch.milliseconds();
  }

  /// The base calls the two above and then the narrow phase, which is not virtual itself.
  void performDiscreteCollisionDetection() override {
    const double before = times.broadphase();
    const Stopwatch watch;
    btDiscreteDynamicsWorld::performDiscreteCollisionDetection();
    times.narrowPhase += watch.milliseconds() - (times.broadphase() - before);
  }

  void solveConstraints(btContactSolverInfo& info) override {
    const Stopwatch watch;
    btDiscreteDynamicsWorld::solveConstraints(info);
    times.solver += watch.milliseconds();
  }

  StepTimes times;
};

World::World(std::unique_ptr<btBroadphaseInterface> broadphase)
    : dispatcher_(&configuration_),
      broadphase_(std::move(broadphase)),
      world_(std::make_unique<TimedWorld>(&dispatcher_, broadphase_.get(), &solver_,
                                          &configuration_)) {
  world_->setGravity({0, btScalar(-9.81), 0});
}

// All pairs in one pass; left to Bullet's destructor, a large world takes seconds to go.
World::~World() { removeAllPairs(*broadphase_, &dispatcher_); }

btRigidBody& World::add(std::unique_ptr<btRigidBody> body) {
  bodies_.push_back(std::move(body));
  world_->addRigidBody(bodies_.back().get());
  return *bodies_.back();
}

btRigidBody& World::addMoving(btCollisionShape& shape, btScalar mass, const btTransform& start) {
  btVector3 inertia(0, 0, 0);
  shape.calculateLocalInertia(mass, inertia);
  btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
  info.m_startWorldTransform = start;
  return add(std::make_unique<btRigidBody>(info));
}

btRigidBody& World::addStatic(btCollisionShape& shape, const btTransform& place) {
  btRigidBody::btRigidBodyConstructionInfo info(0, nullptr, &shape);
  info.m_startWorldTransform = place;
  return add(std::make_unique<btRigidBody>(info));
}

void World::step() {
  world_->times = {};
  const Stopwatch watch;
  world_->stepSimulation(btScalar(1) / 60, 0);
  world_->times.step = watch.milliseconds();
}

const StepTimes& World::times() const { return world_->times; }

void World::setBroadphase(std::unique_ptr<btBroadphaseInterface> broadphase) {
  migrateBroadphase(world_.get(), broadphase.get());
  broadphase_ = std::move(broadphase);
}

int World::pairs() const {
  return broadphase_->getOverlappingPairCache()->getNumOverlappingPairs();
}

std::uint64_t World::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](const btVector3& v) {
    for (int axis = 0; axis < 3; ++axis) {
      unsigned char bytes[sizeof(btScalar)];
      std::memcpy(bytes, &v[axis], sizeof bytes);
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
    }
  };
  const btCollisionObjectArray& objects = world_->getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    const btTransform& place = objects[i]->getWorldTransform();
    add(place.getOrigin());
    for (int row = 0; row < 3; ++row) add(place.getBasis()[row]);
  }
  return hash;
}

int World::objects() const { return world_->getNumCollisionObjects(); }

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
