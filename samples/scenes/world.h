// SPDX-License-Identifier: Zlib
// A Bullet world that owns all its parts and times the parts of each step. Does not choose the
// broad phase (support/broadphases.h) or the objects (scenes.h).
#pragma once

#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <btBulletDynamicsCommon.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "broadphase/types.h"

class btConstraintSolverPoolMt;
class btSoftBody;
class btSoftRigidDynamicsWorld;
struct btSoftBodyWorldInfo;

/// Times of one step's parts in milliseconds: wall-clock times, except broadphaseCpu.
struct StepTimes {
  double step = 0;            ///< all of stepSimulation
  double updateAabbs = 0;     ///< setAabb for every object
  double calculatePairs = 0;  ///< calculateOverlappingPairs
  double narrowPhase = 0;     ///< contact points of every pair in the cache
  double solver = 0;          ///< islands and constraints
  double broadphaseCpu = 0;   ///< CPU time of the calling thread in the broad phase

  double broadphase() const { return updateAabbs + calculatePairs; }
};

class World {
 public:
  /// @param onBulletsThreads whether to make a btDiscreteDynamicsWorldMt, which has no soft bodies.
  ///   That world runs on one thread if Bullet was built without threads (BT_THREADSAFE)
  explicit World(std::unique_ptr<btBroadphaseInterface> broadphase, bool onBulletsThreads = false);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The world owns the objects that these functions make or take.

  /// Makes a shape, or a mesh for a shape.
  template <class Shape, class... Arguments>
  Shape& make(Arguments&&... arguments) {
    auto owner = std::make_unique<Shape>(std::forward<Arguments>(arguments)...);
    Shape& shape = *owner;
    keep(std::move(owner));
    return shape;
  }

  btRigidBody& addMoving(btCollisionShape& shape, btScalar mass, const btTransform& start);
  btRigidBody& addStatic(btCollisionShape& shape, const btTransform& place);

  /// Adds a body that the scene moves. By default it pairs with neither kinematic nor static
  /// bodies, as in Bullet.
  btRigidBody& addKinematic(btCollisionShape& shape, const btTransform& start,
                            int group = btBroadphaseProxy::StaticFilter,
                            int mask = btBroadphaseProxy::AllFilter ^
                                       btBroadphaseProxy::StaticFilter);

  /// Adds a ghost, whose list of overlapping objects is kept up to date from now on.
  btPairCachingGhostObject& addGhost(btCollisionShape& shape, const btTransform& place, int flags,
                                     int group, int mask);

  /// @param body must be made with softInfo()
  btSoftBody& add(std::unique_ptr<btSoftBody> body);

  /// Adds a joint between two bodies of this world. They no longer collide with each other.
  void add(std::unique_ptr<btTypedConstraint> joint);
  void add(std::unique_ptr<btActionInterface> action);

  /// From now on the filter decides which pairs may collide, instead of groups and masks.
  void setFilter(std::unique_ptr<btOverlapFilterCallback> filter);

  /// Sets a callback that runs before each step. It may move kinematic bodies, fire shots or read
  /// ghosts, and may keep references to objects of the world. It is not timed.
  void beforeEachStep(std::function<void(int step)> callback);

  /// From now on no object falls asleep. Objects that a scene took out of the simulation stay out.
  void keepAwake() { isKeptAwake_ = true; }

  /// Runs one step of 1/60 s, without substeps.
  void step();

  /// Moves all objects to another broad phase (migrateBroadphase.h), and frees the previous one.
  /// Call it between two steps. The capacity of the new broad phase must suffice for all objects.
  void setBroadphase(std::unique_ptr<btBroadphaseInterface> broadphase);

  const StepTimes& times() const;
  int pairs() const;                ///< number of pairs in the cache after the last step
  int objects() const;              ///< number of all objects
  int staticObjects() const;        ///< number of objects that never move
  std::vector<lbvh::Aabb> boxes();  ///< boxes of all objects, read from the broad phase

  /// A hash of the bits of all transforms and of all nodes of soft bodies. If two runs have
  /// equal hashes, their simulations are equal.
  std::uint64_t hash() const;
  btDiscreteDynamicsWorld& bullet();
  btSoftBodyWorldInfo& softInfo();
  btBroadphaseInterface& broadphase() { return *broadphase_; }

 private:
  class TimedWorld;
  btSoftRigidDynamicsWorld& softWorld();
  void wakeAll();
  void keep(std::unique_ptr<btCollisionShape> shape) { shapes_.push_back(std::move(shape)); }
  void keep(std::unique_ptr<btStridingMeshInterface> mesh) { meshes_.push_back(std::move(mesh)); }
  template <class Object>
  Object& own(std::unique_ptr<Object> object) {
    Object& reference = *object;
    objects_.push_back(std::move(object));
    return reference;
  }

  // Members are destroyed from the last to the first. So the world is destroyed before the objects
  // that it refers to.
  std::unique_ptr<btCollisionConfiguration> configuration_;
  std::unique_ptr<btCollisionDispatcher> dispatcher_;
  std::unique_ptr<btGhostPairCallback> ghostCallback_;  ///< set in the cache; null without ghosts
  std::unique_ptr<btOverlapFilterCallback> filter_;
  std::unique_ptr<btBroadphaseInterface> broadphase_;
  std::unique_ptr<btConstraintSolver> solver_;
  std::unique_ptr<btConstraintSolverPoolMt> solvers_;  ///< solves islands on Bullet's threads
  std::vector<std::unique_ptr<btStridingMeshInterface>> meshes_;
  std::vector<std::unique_ptr<btCollisionShape>> shapes_;
  std::vector<std::unique_ptr<btCollisionObject>> objects_;
  std::vector<std::unique_ptr<btTypedConstraint>> joints_;
  std::vector<std::unique_ptr<btActionInterface>> actions_;
  std::unique_ptr<TimedWorld> timed_;
  btDiscreteDynamicsWorld* world_;
  std::function<void(int)> beforeStep_;
  int steps_ = 0;
  bool isKeptAwake_ = false;
};
