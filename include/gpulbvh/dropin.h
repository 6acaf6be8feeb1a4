// SPDX-License-Identifier: Zlib
/// @file
/// Replaces btDbvtBroadphase in a program's own sources. Add `#include <gpulbvh/dropin.h>` after
/// all other headers, or pass `-include gpulbvh/dropin.h` to the compiler. From then on the name
/// btDbvtBroadphase means a GpuLbvhBroadphase. Do not include this header in Bullet's own sources.
/// Do not pass such an object as a btDbvtBroadphase to a library that was compiled without this
/// header. Requires C++17.
#pragma once

#ifdef __cplusplus  // -include also applies to C files
#include <BulletCollision/BroadphaseCollision/btAxisSweep3.h>
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include "../../integration/GpuLbvhBroadphase.h"

/// A GpuLbvhBroadphase with the public members of a btDbvtBroadphase, except m_stageRoots. The
/// broad phase reads none of the variables below. Of these, only m_paircache has a useful value.
struct GpuLbvhAsDbvt : GpuLbvhBroadphase {
  enum { DYNAMIC_SET = 0, FIXED_SET = 1, STAGECOUNT = 2 };
  btDbvt m_sets[2];
  btOverlappingPairCache* m_paircache;
  btScalar m_prediction = 0, m_updates_ratio = 0;
  int m_stageCurrent = 0, m_fupdates = 1, m_dupdates = 0, m_cupdates = 10, m_newpairs = 1;
  int m_fixedleft = 0, m_pid = 0, m_cid = 0, m_gid = 0;
  unsigned m_updates_call = 0, m_updates_done = 0;
  bool m_releasepaircache, m_deferedcollide = false, m_needcleanup = true;

  GpuLbvhAsDbvt(btOverlappingPairCache* pairCache = nullptr)
      : GpuLbvhBroadphase(pairCache),
        m_paircache(getOverlappingPairCache()),
        m_releasepaircache(pairCache == nullptr) {}

  void collide(btDispatcher* dispatcher) { calculateOverlappingPairs(dispatcher); }
  void performDeferredRemoval(btDispatcher*) {}
  static void benchmark(btBroadphaseInterface*) {}
};
#define btDbvtBroadphase GpuLbvhAsDbvt
#endif
