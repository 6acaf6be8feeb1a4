// SPDX-License-Identifier: Zlib
#include "recording.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "support/box_finders.h"
#include "support/recorded_boxes.h"

namespace {

using Frame = std::vector<lbvh::Aabb>;

constexpr btScalar kFar = 1e6;              // m; infinite boxes are clipped at this distance
constexpr btScalar kThin = btScalar(1e-4);  // m; the minimum size, because shapes cannot be flat

struct Shown {
  btBoxShape* shape;  ///< a cube of one metre, scaled to the box
  btRigidBody* body;
};

btVector3 corner(const float (&at)[3]) {
  btVector3 point(at[0], at[1], at[2]);
  point.setMax({-kFar, -kFar, -kFar});
  point.setMin({kFar, kFar, kFar});
  return point;
}

btTransform placeOf(const lbvh::Aabb& box) {
  return btTransform(btQuaternion::getIdentity(), (corner(box.min) + corner(box.max)) / 2);
}

void scale(btBoxShape& shape, const lbvh::Aabb& box) {
  btVector3 size = corner(box.max) - corner(box.min);
  size.setMax({kThin, kThin, kThin});
  shape.setLocalScaling(size);
}

bool isSame(const lbvh::Aabb& a, const lbvh::Aabb& b) {
  return std::equal(a.min, a.min + 3, b.min) && std::equal(a.max, a.max + 3, b.max);
}

std::vector<Frame> readAll(const std::string& path) {
  BoxReader reader(path);
  std::vector<Frame> frames(reader.frames());
  for (Frame& frame : frames) {
    reader.read(frame);
    requireBoxes("core", frame, path);
  }
  return frames;
}

}  // namespace

void buildRecording(World& world, const std::string& path) {
  const auto frames = std::make_shared<std::vector<Frame>>(readAll(path));
  const Frame& first = frames->front();
  const auto moving = std::make_shared<std::vector<std::pair<std::size_t, Shown>>>();
  for (std::size_t i = 0; i < first.size(); ++i) {
    auto& shape = world.make<btBoxShape>(btVector3(1, 1, 1) / 2);
    scale(shape, first[i]);
    if (std::all_of(frames->begin(), frames->end(),
                    [&](const Frame& frame) { return isSame(frame[i], first[i]); }))
      world.addStatic(shape, placeOf(first[i]));
    else  // these filters let kinematic bodies pair with each other
      moving->push_back(
          {i,
           {&shape, &world.addKinematic(shape, placeOf(first[i]), btBroadphaseProxy::DefaultFilter,
                                        btBroadphaseProxy::AllFilter)}});
  }
  world.beforeEachStep([frames, moving](int step) {
    const Frame& frame = (*frames)[std::min(static_cast<std::size_t>(step), frames->size() - 1)];
    for (const auto& [i, shown] : *moving) {
      scale(*shown.shape, frame[i]);
      shown.body->setWorldTransform(placeOf(frame[i]));
    }
  });
}
