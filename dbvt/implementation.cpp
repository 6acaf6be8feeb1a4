// SPDX-License-Identifier: Zlib
// Makes the GpuLbvhBroadphase behind a btDbvtBroadphase, for one precision of Bullet. The preloaded
// library loads this implementation at run time.
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include <cstddef>
#include <new>

#include "members.h"
#include "object.h"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(sizeof(DbvtObject::Tree) == sizeof(btDbvt));
static_assert(offsetof(DbvtObject, ours) == offsetof(btDbvtBroadphase, m_stageRoots));
static_assert(offsetof(DbvtObject, pairCache) == offsetof(btDbvtBroadphase, m_paircache));
static_assert(sizeof(btDbvtBroadphase::m_stageRoots) == 3 * sizeof(void*));

namespace {

void* construct(void* memory, btOverlappingPairCache* pairCache) {
  GpuLbvhBroadphase* const ours = gpulbvhDbvt::makeBroadphase(pairCache);
  auto& dbvt = *static_cast<btDbvtBroadphase*>(memory);
  for (btDbvt& set : dbvt.m_sets) new (&set) btDbvt;
  new (&dbvt.m_rayTestStacks) decltype(dbvt.m_rayTestStacks);
  gpulbvhDbvt::setMembers(dbvt, ours, pairCache != nullptr);
  return static_cast<btBroadphaseInterface*>(ours);
}

void destroy(void* object, void* ours) {
  delete static_cast<btBroadphaseInterface*>(ours);
  auto& dbvt = *static_cast<btDbvtBroadphase*>(object);
  using Stacks = decltype(dbvt.m_rayTestStacks);
  dbvt.m_rayTestStacks.~Stacks();
  for (btDbvt& set : dbvt.m_sets) set.~btDbvt();
}

void release(void* object) { ::operator delete(object); }

}  // namespace

extern "C" __attribute__((visibility("default")))
const DbvtImplementation GPULBVH_DBVT_IMPLEMENTATION;
const DbvtImplementation GPULBVH_DBVT_IMPLEMENTATION = {
    gpulbvhDbvtBulletsNames, gpulbvhDbvtBulletsAddresses, construct, destroy, release};
