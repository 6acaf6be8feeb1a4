// SPDX-License-Identifier: Zlib
// Uses the adapter.
#include <GpuLbvhBroadphase.h>
#include <broadphase/query/tree_query.h>  // the path of version 0.2.0
#include <btBulletCollisionCommon.h>
#include <gpulbvh/GpuLbvhBroadphase.h>
#include <migrateBroadphase.h>

int main() {
  GpuLbvhBroadphase broadphase;
  int client = 0;
  const btVector3 lo(0, 0, 0), hi(1, 1, 1);
  broadphase.createProxy(lo, hi, 0, &client, 1, -1, nullptr);
  broadphase.createProxy(hi, hi + hi, 0, &client, 1, -1, nullptr);
  broadphase.calculateOverlappingPairs(nullptr);
  broadphase.printStats();
  if (broadphase.stats().pairs != 1) return 1;

  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher(&configuration);
  btDbvtBroadphase before;
  btCollisionWorld world(&dispatcher, &before, &configuration);
  return migrateBroadphase(&world, &broadphase) == &before ? 0 : 1;
}
