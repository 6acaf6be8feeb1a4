// SPDX-License-Identifier: Zlib
#include "view.h"

#include <stdexcept>

View::View(const SessionOptions& options) : session_(options) { frame(); }

void View::restart(const SessionOptions& options) {
  const bool isAnother = options.scene != session_.options().scene ||
                         options.recording != session_.options().recording;
  picked_ = nullptr;
  partners_.clear();
  error_.clear();
  scene_.clear();
  session_.restart(options);
  if (isAnother) frame();
}

void View::swap(const std::string& broadphase, const lbvh::Options& finder) {
  session_.swap(broadphase, finder);
  error_.clear();
}

void View::step() {
  try {
    session_.step();
  } catch (const std::runtime_error& failure) {
    error_ = failure.what();
    isPaused = true;
  }
}

void View::shoot(btScalar x, btScalar y, btScalar aspect) {
  session_.shoot(camera.rayThrough(x, y, aspect));
}

void View::pickAt(btScalar x, btScalar y, btScalar aspect) {
  picked_ = pick(session_.world(), camera.rayThrough(x, y, aspect), scene_.seenThrough());
}

void View::frame() {
  const Extent extent = extentOf(session_.world());
  camera.frame(extent.low, extent.high);
}

const Drawing& View::draw() {
  World& world = session_.world();
  // A scene may remove objects while it runs.
  if (picked_ != nullptr && world.bullet().getCollisionObjectArray().findLinearSearch(
                                const_cast<btCollisionObject*>(picked_)) == world.objects())
    picked_ = nullptr;
  partners_.clear();
  if (picked_ != nullptr) partners_ = partnersOf(world, *picked_);
  drawing_ = {};
  const bool dims = switches.pairs || switches.changes || picked_ != nullptr;
  scene_.draw(world, camera, picked_, partners_, dims, drawing_);
  overlays_.draw(session_, switches, picked_, partners_, drawing_);
  return drawing_;
}
