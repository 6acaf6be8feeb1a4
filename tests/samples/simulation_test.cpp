// SPDX-License-Identifier: Zlib
// Compares two identical towers of boxes, one with our broad phase and one with btDbvtBroadphase.
#include <gtest/gtest.h>

#include "GpuLbvhBroadphase.h"
#include "scenes/scenes.h"

namespace {

/// A stack of five boxes of side 1.
void buildTower(World& world) {
  world.addStatic(world.make<btBoxShape>(btVector3(50, 1, 50)), at(0, -1, 0));
  btCollisionShape& box =
      world.make<btBoxShape>(btVector3(btScalar(0.5), btScalar(0.5), btScalar(0.5)));
  for (int i = 0; i < 5; ++i)
    world.addMoving(box, 1, at(0, btScalar(0.5) + btScalar(i) * btScalar(1.02), 0));
}

TEST(Simulation, AStackComesToRestAsWithDbvt) {
  World ours(std::make_unique<GpuLbvhBroadphase>()), dbvt(std::make_unique<btDbvtBroadphase>());
  for (World* world : {&ours, &dbvt}) {
    buildTower(*world);
    for (int step = 0; step < 300; ++step) world->step();
  }
  const btCollisionObjectArray& a = ours.bullet().getCollisionObjectArray();
  const btCollisionObjectArray& b = dbvt.bullet().getCollisionObjectArray();
  for (int i = 1; i < a.size(); ++i) {
    const btVector3 where = a[i]->getWorldTransform().getOrigin();
    EXPECT_NEAR(where.y(), i - 0.5, 0.02) << "box " << i;
    EXPECT_NEAR(where.x(), 0, 0.02);
    EXPECT_LT((where - b[i]->getWorldTransform().getOrigin()).length(), 0.01) << "box " << i;
    EXPECT_LT(btRigidBody::upcast(a[i])->getLinearVelocity().length(), 0.01) << "box " << i;
  }
}

}  // namespace
