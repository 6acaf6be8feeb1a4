// SPDX-License-Identifier: Zlib
// Temporarily replaces the world's broad phase by one that does nothing.
#include "scenes/aabb_cost.h"

#include <BulletCollision/CollisionDispatch/btCollisionWorld.h>

#include "support/timing.h"

namespace {

class NoBroadphase : public btBroadphaseInterface {
 public:
  btBroadphaseProxy* createProxy(const btVector3&, const btVector3&, int, void*, int, int,
                                 btDispatcher*) override {
    return nullptr;
  }
  void destroyProxy(btBroadphaseProxy*, btDispatcher*) override {}
  void setAabb(btBroadphaseProxy*, const btVector3&, const btVector3&, btDispatcher*) override {}
  void getAabb(btBroadphaseProxy*, btVector3&, btVector3&) const override {}
  void rayTest(const btVector3&, const btVector3&, btBroadphaseRayCallback&, const btVector3&,
               const btVector3&) override {}
  void aabbTest(const btVector3&, const btVector3&, btBroadphaseAabbCallback&) override {}
  void calculateOverlappingPairs(btDispatcher*) override {}
  btOverlappingPairCache* getOverlappingPairCache() override { return nullptr; }
  const btOverlappingPairCache* getOverlappingPairCache() const override { return nullptr; }
  void getBroadphaseAabb(btVector3&, btVector3&) const override {}
  void printStats() override {}
};

}  // namespace

double millisecondsOfAabbs(btCollisionWorld& world) {
  NoBroadphase none;
  btBroadphaseInterface* const own = world.getBroadphase();
  world.setBroadphase(&none);
  const Stopwatch watch;
  world.btCollisionWorld::updateAabbs();  // not the override, which measures its own time
  const double milliseconds = watch.milliseconds();
  world.setBroadphase(own);
  return milliseconds;
}
