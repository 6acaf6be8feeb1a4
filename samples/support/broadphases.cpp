// SPDX-License-Identifier: Zlib
// The table of broad phases, and the information that only GpuLbvhBroadphase has.
#include "support/broadphases.h"

#include <BulletCollision/BroadphaseCollision/btAxisSweep3.h>
#include <BulletCollision/BroadphaseCollision/btDbvtBroadphase.h>
#include <BulletCollision/BroadphaseCollision/btSimpleBroadphase.h>
#include <GpuLbvhBroadphase.h>
#include <fmt/format.h>

#include <stdexcept>

namespace {

using Owner = std::unique_ptr<btBroadphaseInterface>;

struct Row {
  const char* name;
  Owner (*make)(const BroadphaseSetup& setup);
  bool isExact;         ///< finds only pairs that overlap
  bool isSized;         ///< needs the number of objects when it is made
  int mostObjects;      ///< maximum number of objects; more would take minutes; 0: no limit
  const char* because;  ///< the reason for the limit
};

Owner makeGpuLbvh(const BroadphaseSetup& setup) {
  return std::make_unique<GpuLbvhBroadphase>(setup.options);
}

Owner makeDbvt(const BroadphaseSetup&) { return std::make_unique<btDbvtBroadphase>(); }

/// The axis sweep rounds boxes outward to a grid of 2^31 steps over the world, so it also finds a
/// few pairs that do not overlap. Two handles are spare.
Owner makeAxisSweep(const BroadphaseSetup& setup) {
  return std::make_unique<bt32BitAxisSweep3>(setup.low, setup.high,
                                             static_cast<unsigned>(setup.maxObjects) + 2);
}

Owner makeSimple(const BroadphaseSetup& setup) {
  return std::make_unique<btSimpleBroadphase>(setup.maxObjects + 1);
}

constexpr Row kRows[] = {
    {"gpu-lbvh", makeGpuLbvh, true, false, 0, ""},
    {"dbvt", makeDbvt, false, false, 0, ""},
    {"axis-sweep", makeAxisSweep, false, true, 20000,
     "adding an object moves it past all others on each axis"},
    {"simple", makeSimple, true, true, 2000, "every two objects are tested in every step"},
};

/// Null if no broad phase has that name.
const Row* find(const std::string& name) {
  for (const Row& row : kRows)
    if (name == row.name) return &row;
  return nullptr;
}

struct RemoveAll : btOverlapCallback {
  bool processOverlap(btBroadphasePair&) override { return true; }
};

}  // namespace

const std::vector<std::string>& broadphaseNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Row& row : kRows) list.emplace_back(row.name);
    return list;
  }();
  return names;
}

std::unique_ptr<btBroadphaseInterface> makeBroadphase(const std::string& name,
                                                      const BroadphaseSetup& setup) {
  if (const Row* row = find(name)) return row->make(setup);
  throw std::invalid_argument(fmt::format("there is no broad phase '{}'", name));
}

std::string whyLeftOut(const std::string& name, int objects) {
  const Row* row = find(name);
  if (row == nullptr || row->mostObjects == 0 || objects <= row->mostObjects) return "";
  return fmt::format("{}; it is compared up to {} objects", row->because, row->mostObjects);
}

bool findsExactly(const std::string& name) {
  const Row* row = find(name);
  return row == nullptr || row->isExact;
}

bool isSized(const std::string& name) {
  const Row* row = find(name);
  return row != nullptr && row->isSized;
}

std::string threadsInWords(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string instructionsInWords(const std::string& instructions) {
  if (instructions == "avx512") return "AVX-512";
  if (instructions == "avx2") return "AVX2";
  if (instructions == "neon") return "NEON";
  return "baseline instructions";
}

Space spaceOf(const lbvh::Stats& stats) {
  const bool isHost = stats.backend == "host";
  std::string details =
      isHost ? fmt::format("host, {}, {}", threadsInWords(stats.threads),
                           instructionsInWords(stats.instructions))
             : fmt::format("{}, {} of the host", stats.backend, threadsInWords(stats.threads));
#if defined(GPULBVH_CUDA)  // without CUDA there is no choice, so no reason
  details += "; " + stats.reason;
#endif
  return {isHost ? "host" : "cuda", std::move(details), stats.threads};
}

Space spaceOf(const btBroadphaseInterface& broadphase) {
  if (const lbvh::Stats* stats = statsOf(broadphase)) return spaceOf(*stats);
  return {"-", "host, 1 thread; Bullet's own", 1};
}

const lbvh::Stats* statsOf(const btBroadphaseInterface& broadphase) {
  const auto* ours = dynamic_cast<const GpuLbvhBroadphase*>(&broadphase);
  return ours != nullptr ? &ours->stats() : nullptr;
}

Memory memoryOf(btBroadphaseInterface& broadphase) {
  const btBroadphasePairArray& pairs =
      broadphase.getOverlappingPairCache()->getOverlappingPairArray();
  const lbvh::Stats* stats = statsOf(broadphase);
  return {static_cast<std::size_t>(pairs.capacity()) * sizeof(btBroadphasePair),
          stats != nullptr ? stats->memoryBytes : 0};
}

std::string errorOf(const btBroadphaseInterface& broadphase) {
  const auto* ours = dynamic_cast<const GpuLbvhBroadphase*>(&broadphase);
  return ours != nullptr ? ours->error() : "";
}

void requireFinished(const btBroadphaseInterface& broadphase, const std::string& name) {
  const std::string error = errorOf(broadphase);
  if (!error.empty()) throw std::runtime_error(fmt::format("{}: {}", name, error));
}

void removeAllPairs(btBroadphaseInterface& broadphase, btDispatcher* dispatcher) {
  RemoveAll callback;
  broadphase.getOverlappingPairCache()->processAllOverlappingPairs(&callback, dispatcher);
}
