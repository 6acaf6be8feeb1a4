// SPDX-License-Identifier: Zlib
// Holds a running simulation: a scene's world, its broad phase, and the measured values of the last
// steps. The broad phase can be swapped between two steps. Does not draw.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "camera.h"
#include "history.h"
#include "pair_changes.h"
#include "scenes/scenes.h"
#include "support/broadphases.h"

struct SessionOptions {
  std::string scene = "debris";
  std::string recording;  ///< an .aabb file, shown instead of the scene; empty: none
  int objects = 0;        ///< number of moving bodies; 0: the scene's default
  std::uint32_t seed = 1;
  std::string broadphase = "gpu-lbvh";
  lbvh::Options finder;  ///< options of gpu-lbvh
};

class Session {
 public:
  explicit Session(const SessionOptions& options);

  /// Starts the scene from the beginning.
  void restart(const SessionOptions& options);

  /// @throws std::runtime_error if the broad phase could not finish the step
  void step();

  /// Names of the broad phases that are fast enough for the number of objects in the world.
  std::vector<std::string> broadphases() const;

  /// Replaces the broad phase of the running world by another one, or by the same kind with other
  /// options.
  void swap(const std::string& broadphase, const lbvh::Options& finder);

  /// Throws a box along a ray. If kShots boxes exist already, throws the oldest box again.
  void shoot(const PickRay& ray);
  static constexpr int kShots = 100;

  World& world() { return *world_; }
  const SessionOptions& options() const { return options_; }
  int steps() const { return steps_; }
  const History& history() const { return history_; }
  const PairChanges& changes() const { return changes_; }

 private:
  /// Makes a broad phase with a capacity of `objects` + kShots objects.
  std::unique_ptr<btBroadphaseInterface> make(const std::string& broadphase,
                                              const lbvh::Options& finder, int objects) const;

  SessionOptions options_;
  std::unique_ptr<World> world_;
  int steps_ = 0;
  std::vector<btRigidBody*> shots_;
  std::size_t nextShot_ = 0;
  History history_;
  PairChanges changes_;
  std::string swappedTo_;
};
