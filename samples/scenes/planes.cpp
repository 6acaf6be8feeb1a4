// SPDX-License-Identifier: Zlib
// The planes scene: bodies fill a funnel of infinite planes, inside two endless zones. Each body
// overlaps every endless box in every step. In a tree such boxes would enlarge the bounds of all
// nodes above them.
#include <algorithm>
#include <cmath>

#include "scenes/scenes.h"
#include "support/random.h"

namespace {

constexpr btScalar kPlanesSpacing = btScalar(1.3);  // m
constexpr btScalar kSlope = btScalar(0.6);          // m upward per metre outward

/// An endless, empty box, such as a weather zone. Its pairs have no contacts.
class Zone : public btEmptyShape {
 public:
  explicit Zone(btScalar half) : half_(half) {}
  void getAabb(const btTransform&, btVector3& low, btVector3& high) const override {
    low.setValue(-half_, -half_, -half_);
    high.setValue(half_, half_, half_);
  }

 private:
  btScalar half_;
};

/// Adds a plane through `point`. It is solid on the side that `normal` points away from.
void addPlane(World& world, btVector3 normal, const btVector3& point) {
  normal.normalize();
  auto& plane = world.make<btStaticPlaneShape>(normal, normal.dot(point));
  world.addStatic(plane, at(0, 0, 0)).setFriction(btScalar(0.4));
}

}  // namespace

void buildPlanes(World& world, const SceneOptions& options) {
  Random random(options.seed);
  const int side = std::max(1, static_cast<int>(std::cbrt(options.objects * 1.5)));
  const btScalar half = btScalar(side) * kPlanesSpacing / 2;
  const btScalar foot = half / 2;  // half the floor's side
  addPlane(world, {0, 1, 0}, {0, 0, 0});
  for (const btScalar way : {btScalar(-1), btScalar(1)}) {
    addPlane(world, {way * kSlope, 1, 0}, {-way * foot, 0, 0});
    addPlane(world, {0, 1, way * kSlope}, {0, 0, -way * foot});
    addPlane(world, {way, 0, 0}, {-way * 2 * half, 0, 0});
  }
  world.addStatic(world.make<Zone>(btScalar(1e6)), at(0, 0, 0));
  world.addStatic(world.make<Zone>(btScalar(1e30)), at(0, 0, 0));

  btCollisionShape* const shapes[] = {
      &world.make<btBoxShape>(btVector3(btScalar(0.4), btScalar(0.4), btScalar(0.4))),
      &world.make<btSphereShape>(btScalar(0.45)),
      &world.make<btCapsuleShape>(btScalar(0.25), btScalar(0.5)),
      &world.make<btCylinderShape>(btVector3(btScalar(0.4), btScalar(0.3), btScalar(0.4)))};
  for (int i = 0; i < options.objects; ++i) {
    const btVector3 cell(btScalar(i % side), btScalar(i / (side * side)),
                         btScalar(i / side % side));
    const btVector3 place = (cell + btVector3(btScalar(0.5), 0, btScalar(0.5))) * kPlanesSpacing -
                            btVector3(half, 0, half) + random.inCube() * btScalar(0.1);
    const btScalar above = kSlope * half + 1;
    btRigidBody& body =
        world.addMoving(*shapes[random.below(4)], 1, at(place.x(), place.y() + above, place.z()));
    body.setRollingFriction(btScalar(0.02));
    body.setSpinningFriction(btScalar(0.02));
  }
}
