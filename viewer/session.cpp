// SPDX-License-Identifier: Zlib
#include "session.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "recording.h"

Session::Session(const SessionOptions& options) { restart(options); }

std::unique_ptr<btBroadphaseInterface> Session::make(const std::string& broadphase,
                                                     const lbvh::Options& finder,
                                                     int objects) const {
  BroadphaseSetup setup = setupFor(objects + kShots, finder);
  setup.options.stageTimes = true;
  return makeBroadphase(broadphase, setup);
}

void Session::restart(const SessionOptions& options) {
  const Scene* scene = findScene(options.scene.c_str());
  if (scene == nullptr) throw std::invalid_argument("there is no scene '" + options.scene + "'");
  options_ = options;
  if (options_.objects == 0) options_.objects = scene->defaultObjects;
  shots_.clear();
  nextShot_ = 0;
  // Some broad phases need the number of objects in advance. Such a broad phase replaces dbvt after
  // the scene is built.
  const bool asksForSize = isSized(options.broadphase);
  world_ = std::make_unique<World>(
      make(asksForSize ? "dbvt" : options.broadphase, options.finder, options_.objects));
  if (options_.recording.empty())
    scene->build(*world_, {options_.objects, options_.seed});
  else
    buildRecording(*world_, options_.recording);
  if (asksForSize)
    world_->setBroadphase(make(options.broadphase, options.finder, world_->objects()));
  steps_ = 0;
  swappedTo_.clear();
  history_.clear();
  changes_ = {};
  changes_.reset(*world_);
}

void Session::step() {
  world_->step();
  requireFinished(world_->broadphase(), options_.broadphase);
  ++steps_;
  changes_.update(*world_);
  StepRecord record;
  record.times = world_->times();
  if (const lbvh::Stats* stats = statsOf(world_->broadphase())) record.stages = *stats;
  record.pairs = world_->pairs();
  record.added = changes_.added();
  record.removed = changes_.removed();
  record.swappedTo.swap(swappedTo_);
  history_.add(std::move(record));
}

std::vector<std::string> Session::broadphases() const {
  std::vector<std::string> names;
  for (const std::string& name : broadphaseNames())
    if (whyLeftOut(name, world_->objects()).empty()) names.push_back(name);
  return names;
}

void Session::swap(const std::string& broadphase, const lbvh::Options& finder) {
  world_->setBroadphase(make(broadphase, finder, world_->objects()));
  options_.broadphase = broadphase;
  options_.finder = finder;
  swappedTo_ = broadphase;
  changes_.reset(*world_);
}

void Session::shoot(const PickRay& ray) {
  const btScalar half = btScalar(0.6), mass = 400, speed = 45;  // m, kg, m/s
  const btTransform start(btQuaternion::getIdentity(), ray.origin + ray.direction * 2);
  if (shots_.size() < kShots) {
    auto& shape = world_->make<btBoxShape>(btVector3(half, half, half));
    shots_.push_back(&world_->addMoving(shape, mass, start));
    nextShot_ = shots_.size() - 1;
  }
  btRigidBody& shot = *shots_[nextShot_];
  nextShot_ = (nextShot_ + 1) % kShots;
  shot.setWorldTransform(start);
  shot.setInterpolationWorldTransform(start);
  shot.setLinearVelocity(ray.direction * speed);
  shot.setAngularVelocity({0, 0, 0});
  shot.forceActivationState(ACTIVE_TAG);
  shot.activate(true);
  world_->bullet().updateSingleAabb(&shot);
}
