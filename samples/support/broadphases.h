// SPDX-License-Identifier: Zlib
// The broad phases that the samples can use, by name, and where each one runs. Runs no steps.
#pragma once

#include <BulletCollision/BroadphaseCollision/btBroadphaseInterface.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"

/// The settings of a new broad phase. Each kind of broad phase uses only some of them.
struct BroadphaseSetup {
  lbvh::Options options;   ///< used by gpu-lbvh
  int maxObjects = 0;      ///< used by axis-sweep and simple
  btVector3 low{0, 0, 0};  ///< corners of the world's box, used by axis-sweep
  btVector3 high{0, 0, 0};
};

/// All names, gpu-lbvh first.
const std::vector<std::string>& broadphaseNames();

/// @param name one of broadphaseNames()
std::unique_ptr<btBroadphaseInterface> makeBroadphase(const std::string& name,
                                                      const BroadphaseSetup& setup);

/// Whether a broad phase, or `core`, finds only pairs that overlap.
bool findsExactly(const std::string& name);

/// Whether a broad phase needs the number of objects when it is made.
bool isSized(const std::string& name);

/// Why a comparison of all broad phases leaves this one out; empty if the comparison includes it.
std::string whyLeftOut(const std::string& name, int objects);

/// "1 thread", "2 threads".
std::string threadsInWords(int threads);

/// A readable name for a value of Stats::instructions.
std::string instructionsInWords(const std::string& instructions);

/// Where a broad phase runs.
struct Space {
  std::string word;     ///< for programs: `host`, `cuda`, or `-` for Bullet's broad phases
  std::string details;  ///< for people: device, threads, and in builds with CUDA why it was chosen
  int threads = 1;
};
Space spaceOf(const lbvh::Stats& stats);
Space spaceOf(const btBroadphaseInterface& broadphase);

/// Statistics of the last step; null for Bullet's broad phases.
const lbvh::Stats* statsOf(const btBroadphaseInterface& broadphase);

/// Bytes that a broad phase has allocated for its pairs and, with gpu-lbvh, in its finder.
struct Memory {
  std::size_t pairs = 0;
  std::size_t finder = 0;
};
Memory memoryOf(btBroadphaseInterface& broadphase);

/// Why the last step failed; empty if it did not.
std::string errorOf(const btBroadphaseInterface& broadphase);

/// @throws std::runtime_error that names the broad phase, if its last step failed
void requireFinished(const btBroadphaseInterface& broadphase, const std::string& name);

/// Removes all pairs in one pass. Call it before you remove all objects. Otherwise Bullet searches
/// all pairs for each removed object, which takes seconds with a large scene.
void removeAllPairs(btBroadphaseInterface& broadphase, btDispatcher* dispatcher);
