// SPDX-License-Identifier: Zlib
// The broad phases that the samples can use, by name, and where each one runs.
// Does not step anything.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"

/// What a broad phase is told when it is made; each uses what it needs.
struct BroadphaseSetup {
  lbvh::Options options;   ///< gpu-lbvh
  int maxObjects = 0;      ///< axis-sweep, simple
  btVector3 low{0, 0, 0};  ///< axis-sweep: the world's box
  btVector3 high{0, 0, 0};
};

/// gpu-lbvh first.
const std::vector<std::string>& broadphaseNames();

/// @param name one of broadphaseNames()
std::unique_ptr<btBroadphaseInterface> makeBroadphase(const std::string& name,
                                                      const BroadphaseSetup& setup);

/// Whether it finds exactly the pairs that overlap, and not more. The core does.
bool findsExactly(const std::string& name);

/// Whether it must be told the number of objects when it is made.
bool isSized(const std::string& name);

/// Why a comparison of all broad phases leaves this one out; empty: it does not.
std::string whyLeftOut(const std::string& name, int objects);

/// Where a broad phase runs.
struct Space {
  std::string word;     ///< for programs: host, cuda, or - for Bullet's own
  std::string details;  ///< for people: device and reason
  int threads = 1;
};
Space spaceOf(const lbvh::Stats& stats);
Space spaceOf(const btBroadphaseInterface& broadphase);

/// Null for Bullet's own.
const lbvh::Stats* statsOf(const btBroadphaseInterface& broadphase);

/// Bytes that its pairs and, of gpu-lbvh, its finder have room for.
struct Memory {
  std::size_t pairs = 0;
  std::size_t finder = 0;
};
Memory memoryOf(btBroadphaseInterface& broadphase);

/// Why the last step could not be finished; empty if it was.
std::string errorOf(const btBroadphaseInterface& broadphase);

/// @throws std::runtime_error that names the broad phase, if its last step could not be finished
void requireFinished(const btBroadphaseInterface& broadphase, const std::string& name);

/// Removes all pairs in one pass. Bullet removes them object by object, and searches all pairs for
/// each: seconds for a large scene. To be called before all objects are removed.
void removeAllPairs(btBroadphaseInterface& broadphase, btDispatcher* dispatcher);
