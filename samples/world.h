// A Bullet world that owns all it needs and times the parts of each step.
// Does not choose the broad phase (broadphases.h) nor what is in the world (scenes.h).
#pragma once

#include <btBulletDynamicsCommon.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "broadphase/types.h"

/// Wall-clock milliseconds of one step's parts.
struct StepTimes {
  double step = 0;            ///< all of stepSimulation
  double updateAabbs = 0;     ///< setAabb for every object
  double calculatePairs = 0;  ///< calculateOverlappingPairs
  double narrowPhase = 0;     ///< contact points of every pair in the cache
  double solver = 0;          ///< islands and constraints

  double broadphase() const { return updateAabbs + calculatePairs; }
};

class World {
 public:
  explicit World(std::unique_ptr<btBroadphaseInterface> broadphase);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Makes a shape, or a mesh that a shape refers to, which lives as long as the world.
  template <class Shape, class... Arguments>
  Shape& make(Arguments&&... arguments) {
    auto owner = std::make_unique<Shape>(std::forward<Arguments>(arguments)...);
    Shape& shape = *owner;
    keep(std::move(owner));
    return shape;
  }

  btRigidBody& addMoving(btCollisionShape& shape, btScalar mass, const btTransform& start);
  btRigidBody& addStatic(btCollisionShape& shape, const btTransform& place);

  /// One step of 1/60 s, not subdivided.
  void step();

  /// Moves all objects to another broad phase, between two steps (migrateBroadphase.h), and frees
  /// the old one. It must have room for all of them.
  void setBroadphase(std::unique_ptr<btBroadphaseInterface> broadphase);

  const StepTimes& times() const;
  int pairs() const;                ///< in the pair cache after the last step
  int objects() const;              ///< moving and static
  std::vector<lbvh::Aabb> boxes();  ///< of all objects, as the broad phase has them

  /// Of all transforms, bit by bit: two runs with one hash went the same way.
  std::uint64_t hash() const;
  btDiscreteDynamicsWorld& bullet();
  btBroadphaseInterface& broadphase() { return *broadphase_; }

 private:
  class TimedWorld;
  void keep(std::unique_ptr<btCollisionShape> shape) { shapes_.push_back(std::move(shape)); }
  void keep(std::unique_ptr<btStridingMeshInterface> mesh) { meshes_.push_back(std::move(mesh)); }
  btRigidBody& add(std::unique_ptr<btRigidBody> body);

  // Destroyed from the last to the first: the world goes before everything that it refers to.
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_;
  std::unique_ptr<btBroadphaseInterface> broadphase_;
  btSequentialImpulseConstraintSolver solver_;
  std::vector<std::unique_ptr<btStridingMeshInterface>> meshes_;
  std::vector<std::unique_ptr<btCollisionShape>> shapes_;
  std::vector<std::unique_ptr<btRigidBody>> bodies_;
  std::unique_ptr<TimedWorld> world_;
};
