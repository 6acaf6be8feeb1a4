// SPDX-License-Identifier: Zlib
// Makes the GpuLbvhBroadphase of a btDbvtBroadphase, with options from the environment. Fills the
// public members of the btDbvtBroadphase, which programs may read.
#pragma once

#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../integration/GpuLbvhBroadphase.h"

#ifdef _MSC_VER
#pragma warning(disable : 4996)  // MSVC warns about getenv
#endif

namespace gpulbvhDbvt {

inline void complain(const char* name, const char* value, const char* wanted) {
  std::fprintf(stderr, "gpulbvh: %s is '%s', which is not %s; it is not used\n", name, value,
               wanted);
}

/// Reads a number from the environment. Prints a message if it is not in the range [0, `most`].
/// @return `otherwise` if there is no valid number
inline double numberOf(const char* name, double otherwise, double most, const char* wanted) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value, &end);
  if (*end == '\0' && number >= 0 && number <= most) return number;
  complain(name, value, wanted);
  return otherwise;
}

/// The backend that GPULBVH_BACKEND names, or else the host. The GPU is not the default, because a
/// program that also uses the GPU does not expect to share it.
inline lbvh::Backend backendOfEnvironment() {
  const char* const value = std::getenv("GPULBVH_BACKEND");
  if (value == nullptr || *value == '\0' || std::strcmp(value, "host") == 0)
    return lbvh::Backend::host;
  if (std::strcmp(value, "cuda") == 0) return lbvh::Backend::cuda;
  if (std::strcmp(value, "auto") == 0) return lbvh::Backend::automatic;
  complain("GPULBVH_BACKEND", value, "host, cuda or auto");
  return lbvh::Backend::host;
}

inline GpuLbvhOptions optionsOfEnvironment() {
  GpuLbvhOptions options;
  options.backend = backendOfEnvironment();
  options.threads = static_cast<int>(numberOf("GPULBVH_THREADS", 0, 4096, "a number of threads"));
  options.margin = static_cast<btScalar>(numberOf("GPULBVH_MARGIN", 0, 1e9, "a length, 0 or more"));
  return options;
}

inline GpuLbvhBroadphase* makeBroadphase(btOverlappingPairCache* pairCache) {
  return new GpuLbvhBroadphase(optionsOfEnvironment(), pairCache);
}

/// Sets the members as Bullet's constructor does, except for the number of stacks. Programs read
/// this number to learn how many threads may cast rays at once.
inline void setMembers(btDbvtBroadphase& dbvt, GpuLbvhBroadphase* ours, bool cacheIsHandedIn) {
  for (btDbvtProxy*& root : dbvt.m_stageRoots) root = nullptr;
  dbvt.m_paircache = ours->getOverlappingPairCache();
  dbvt.m_prediction = 0;
  dbvt.m_stageCurrent = 0;
  dbvt.m_fupdates = 1;
  dbvt.m_dupdates = 0;
  dbvt.m_cupdates = 10;
  dbvt.m_newpairs = 1;
  dbvt.m_fixedleft = 0;
  dbvt.m_updates_call = 0;
  dbvt.m_updates_done = 0;
  dbvt.m_updates_ratio = 0;
  dbvt.m_pid = 0;
  dbvt.m_cid = 0;
  dbvt.m_gid = 0;
  dbvt.m_releasepaircache = !cacheIsHandedIn;
  dbvt.m_deferedcollide = false;
  dbvt.m_needcleanup = true;
  dbvt.m_rayTestStacks.resize(GpuLbvhBroadphase::m_rayTestStacks.size());
}

}  // namespace gpulbvhDbvt
