// SPDX-License-Identifier: Zlib
// A Bullet world that owns all it needs and times the parts of each step.
// Chooses neither the broad phase (support/broadphases.h) nor what is in the world (scenes.h).
#pragma once

#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <btBulletDynamicsCommon.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "broadphase/types.h"

class btSoftBody;
struct btSoftBodyWorldInfo;

/// Wall-clock milliseconds of one step's parts.
struct StepTimes {
  double step = 0;            ///< all of stepSimulation
  double updateAabbs = 0;     ///< setAabb for every object
  double calculatePairs = 0;  ///< calculateOverlappingPairs
  double narrowPhase = 0;     ///< contact points of every pair in the cache
  double solver = 0;          ///< islands and constraints
  double broadphaseCpu = 0;   ///< of the broad phase, what the calling thread spent on a core

  double broadphase() const { return updateAabbs + calculatePairs; }
};

class World {
 public:
  explicit World(std::unique_ptr<btBroadphaseInterface> broadphase);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Whatever is made here or handed over lives as long as the world.

  /// Makes a shape, or a mesh that a shape refers to.
  template <class Shape, class... Arguments>
  Shape& make(Arguments&&... arguments) {
    auto owner = std::make_unique<Shape>(std::forward<Arguments>(arguments)...);
    Shape& shape = *owner;
    keep(std::move(owner));
    return shape;
  }

  btRigidBody& addMoving(btCollisionShape& shape, btScalar mass, const btTransform& start);
  btRigidBody& addStatic(btCollisionShape& shape, const btTransform& place);

  /// A body that the scene moves. By default it pairs with neither kinematic nor static bodies, as
  /// in Bullet.
  btRigidBody& addKinematic(btCollisionShape& shape, const btTransform& start,
                            int group = btBroadphaseProxy::StaticFilter,
                            int mask = btBroadphaseProxy::AllFilter ^
                                       btBroadphaseProxy::StaticFilter);

  /// A ghost whose list of overlapping objects is kept up to date from now on.
  btPairCachingGhostObject& addGhost(btCollisionShape& shape, const btTransform& place, int flags,
                                     int group, int mask);

  /// @param body made with softInfo()
  btSoftBody& add(std::unique_ptr<btSoftBody> body);

  /// A joint of two bodies of this world, which no longer collide with each other.
  void add(std::unique_ptr<btTypedConstraint> joint);
  void add(std::unique_ptr<btActionInterface> action);

  /// From now on the filter decides which pairs collide, instead of groups and masks.
  void setFilter(std::unique_ptr<btOverlapFilterCallback> filter);

  /// Sets what the world calls before each step: the scene may move kinematic bodies, fire shots or
  /// read ghosts. The callback may keep references to what is in the world. It is not timed.
  void beforeEachStep(std::function<void(int step)> callback);

  /// From now on nothing falls asleep. What a scene has taken out of the simulation stays out.
  void keepAwake() { isKeptAwake_ = true; }

  /// One step of 1/60 s, not subdivided.
  void step();

  /// Moves all objects to another broad phase, between two steps (migrateBroadphase.h), and frees
  /// the old one. It must have room for all of them.
  void setBroadphase(std::unique_ptr<btBroadphaseInterface> broadphase);

  const StepTimes& times() const;
  int pairs() const;                ///< in the pair cache after the last step
  int objects() const;              ///< of all kinds
  int staticObjects() const;        ///< that never move
  std::vector<lbvh::Aabb> boxes();  ///< of all objects, as the broad phase has them

  /// Of all transforms and all nodes of soft bodies, bit by bit. Two runs with the same hash are
  /// the same simulation.
  std::uint64_t hash() const;
  btDiscreteDynamicsWorld& bullet();  ///< a btSoftRigidDynamicsWorld
  btSoftBodyWorldInfo& softInfo();
  btBroadphaseInterface& broadphase() { return *broadphase_; }

 private:
  class TimedWorld;
  void wakeAll();
  void keep(std::unique_ptr<btCollisionShape> shape) { shapes_.push_back(std::move(shape)); }
  void keep(std::unique_ptr<btStridingMeshInterface> mesh) { meshes_.push_back(std::move(mesh)); }
  template <class Object>
  Object& own(std::unique_ptr<Object> object) {
    Object& reference = *object;
    objects_.push_back(std::move(object));
    return reference;
  }

  // Destroyed from the last to the first: the world goes before everything that it refers to.
  std::unique_ptr<btCollisionConfiguration> configuration_;
  btCollisionDispatcher dispatcher_;
  std::unique_ptr<btGhostPairCallback> ghostCallback_;  ///< in the cache; null without ghosts
  std::unique_ptr<btOverlapFilterCallback> filter_;
  std::unique_ptr<btBroadphaseInterface> broadphase_;
  btSequentialImpulseConstraintSolver solver_;
  std::vector<std::unique_ptr<btStridingMeshInterface>> meshes_;
  std::vector<std::unique_ptr<btCollisionShape>> shapes_;
  std::vector<std::unique_ptr<btCollisionObject>> objects_;
  std::vector<std::unique_ptr<btTypedConstraint>> joints_;
  std::vector<std::unique_ptr<btActionInterface>> actions_;
  std::unique_ptr<TimedWorld> world_;
  std::function<void(int)> beforeStep_;
  int steps_ = 0;
  bool isKeptAwake_ = false;
};
