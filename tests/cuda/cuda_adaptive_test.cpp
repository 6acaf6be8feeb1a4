// SPDX-License-Identifier: Zlib
// Tests AdaptivePipeline with the real GPU pipeline. The GPU pipeline is warmed up in the
// background, is tried on copies of the boxes, and alternates with the host. Skipped if there is no
// device.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "broadphase/choose/adaptive.h"
#include "broadphase/core/shared_work.h"
#include "broadphase/cuda/step.h"
#include "broadphase/host/step.h"
#include "broadphase/pair_finder.h"
#include "cuda_fixture.h"
#include "support.h"

#if defined(HAS_SCENES)
#include "scenes/scenes.h"
#include "support/recorded_boxes.h"
#endif

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

class CudaAdaptive : public test::OnCuda {};

/// Alternates between host and GPU every four steps. With `tries`, it also requests trials on the
/// one that does not run the steps.
class InTurns final : public SpaceChooser {
 public:
  explicit InTurns(bool tries) : tries_(tries) {}
  Where next() const override { return step_ / 4 % 2 == 0 ? Where::gpu : Where::host; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return tries_ && step_ % 16 < 8; }
  void stepped(Where, const StepFigures&) noexcept override { ++step_; }
  void tried(Where, const TrialFigures&) noexcept override {}
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override { return "its turn"; }

 private:
  const bool tries_;
  int step_ = 0;
};

NamedPipeline makeHost() { return {makeHostPipeline(1, simdKernels()), "host"}; }

NamedPipeline makeGpu() { return {makeCudaPipeline({}), cudaDeviceName()}; }

std::unique_ptr<AdaptivePipeline> makeAdaptive(bool tries) {
  return std::make_unique<AdaptivePipeline>(makeHost().pipeline, makeHost, makeGpu,
                                            std::make_unique<InTurns>(tries));
}

/// Runs a step on both pipelines. All lists must agree.
void stepBoth(AdaptivePipeline& adaptive, Pipeline& host, const StepInput& input) {
  StepStats stats;
  adaptive.step(input, stats);
  host.step(input, stats);
  ASSERT_EQ(toVector(adaptive.added()), toVector(host.added()));
  ASSERT_EQ(toVector(adaptive.removed()), toVector(host.removed()));
  ASSERT_EQ(toVector(adaptive.pairs()), toVector(host.pairs()));
}

// With PTXVM_FAIL, one call of the warm-up, a trial or a step fails. See cuda_faults.sh.
TEST_F(CudaAdaptive, PairsAreTheSameOnHostAndGpu) {
  Random random(201);
  const auto adaptive = makeAdaptive(true);
  const auto host = makeHost().pipeline;
  Boxes boxes = test::boxSets()[0].make(150, random);
  std::vector<std::uint8_t> removedObjects(boxes.size(), 0);
  removedObjects[7] = 1;
  const bool mayFail = std::getenv("PTXVM_FAIL") != nullptr;
  const int enough = mayFail ? 5 : 24;
  int onGpu = 0, afterFailure = 0;
  for (int round = 0; round < 20000 && onGpu < enough && afterFailure < 20; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::uint64_t> changed(3, round == 0 ? ~std::uint64_t{0} : 0);
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t to = random.below(150);
      boxes[to] = boxes[i];
      changed[to / 64] |= std::uint64_t{1} << to % 64;
    }
    const bool tells = round % 3 != 0;
    ASSERT_NO_FATAL_FAILURE(stepBoth(*adaptive, *host,
                                     {view(boxes),
                                      {},
                                      view(removedObjects),
                                      1u << 20,
                                      tells ? view(changed) : View<const std::uint64_t>{}}));
    const SpaceInfo& info = *adaptive->info();
    const bool mustWait = info.reason == "the GPU is being warmed up" || info.reason == "its turn";
    if (info.backend != "host")
      ++onGpu;
    else if (mustWait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      ++afterFailure;
  }
  if (!mayFail) EXPECT_EQ(onGpu, enough) << adaptive->info()->reason;
}

// If the GPU is slow, as the interpreter is, the steps run on the host, and the reported reason
// says so.
TEST_F(CudaAdaptive, SettlesOnTheFasterSpace) {
  Random random(202);
  AdaptivePipeline adaptive(makeHost().pipeline, makeHost, makeGpu,
                            std::make_unique<FasterSpace>(0.0));
  const auto host = makeHost().pipeline;
  Boxes boxes = test::boxSets()[0].make(100, random);
  const SpaceInfo& info = *adaptive.info();
  for (int round = 0; round < 60000 && info.reason.rfind("faster than", 0) != 0; ++round) {
    for (std::size_t i = 0; i < 20; ++i) boxes[random.below(100)] = boxes[i];
    ASSERT_NO_FATAL_FAILURE(stepBoth(adaptive, *host, {view(boxes), {}, {}, 1u << 20}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(info.hostMeanMs, 0);
  EXPECT_GT(info.gpuMeanMs, 0);
  const bool isHost = info.hostMeanMs < info.gpuMeanMs;
  EXPECT_EQ(info.backend == "host", isHost) << info.backend;
  EXPECT_EQ(info.reason, isHost ? "faster than the GPU" : "faster than the host");
}

TEST_F(CudaAdaptive, SmallWorldStaysOnTheHostAndSaysWhy) {
  Random random(203);
  PairFinder finder;
  EXPECT_EQ(finder.stats().backend, "host");
  finder.update(view(test::boxSets()[0].make(20, random)));
  EXPECT_EQ(finder.stats().backend, "host");
  EXPECT_EQ(finder.stats().reason, "steps take less time than the launches on a GPU");
}

#if defined(HAS_SCENES)
Options onHost() {
  Options options;
  options.backend = Backend::host;
  options.threads = 1;
  return options;
}

Boxes boxesOf(World& world) {
  Boxes boxes;
  const btCollisionObjectArray& objects = world.bullet().getCollisionObjectArray();
  for (int i = 0; i < objects.size(); ++i) {
    const btBroadphaseProxy& proxy = *objects[i]->getBroadphaseHandle();
    Aabb box;
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = static_cast<float>(proxy.m_aabbMin[axis]);
      box.max[axis] = static_cast<float>(proxy.m_aabbMax[axis]);
    }
    boxes.push_back(box);
  }
  return boxes;
}

TEST_F(CudaAdaptive, HashesOfSixHundredStepsOfDebrisEqualTheHosts) {
  World world(makeBroadphase("gpu-lbvh", setupFor(120, onHost())));
  buildDebris(world, {120, 1});
  const auto adaptive = makeAdaptive(false);
  const auto host = makeHost().pipeline;
  while (adaptive->info()->reason == "the GPU is being warmed up") {
    StepStats stats;
    adaptive->step({{}, {}, {}, 1}, stats);
  }
  PairHash hashes[2];
  for (int step = 0; step < 600; ++step) {
    world.step();
    const Boxes boxes = boxesOf(world);
    StepStats stats;
    for (Pipeline* one : {static_cast<Pipeline*>(adaptive.get()), host.get()}) {
      one->step({view(boxes), {}, {}, 1u << 20}, stats);
      PairHash& hash = hashes[one == host.get()];
      for (const auto list : {one->pairs(), one->added(), one->removed()})
        for (const Pair pair : list) hash.add(pair);
    }
    ASSERT_EQ(hashes[0].hash(), hashes[1].hash()) << step;
  }
  EXPECT_GT(hashes[1].pairs(), 600u * 120u);
  EXPECT_GE(adaptive->info()->switches, 100u) << adaptive->info()->reason;
}
#endif

/// Work that counts how often each of its pieces is done.
class Counted final : public SharedWork {
 public:
  explicit Counted(std::size_t pieces) : SharedWork(pieces), times(pieces) {}
  std::vector<std::atomic<int>> times;

 private:
  void run(std::size_t piece) noexcept override { ++times[piece]; }
};

// Before a step waits for the GPU, its threads do the caller's remaining work.
TEST_F(CudaAdaptive, AStepHelpsWithWorkOfTheCaller) {
  Options options;
  options.threads = 3;
  const auto gpu = makeCudaPipeline(options);
  const Boxes boxes(20, test::boxAt(0, 0, 0, 1));
  StepInput input{view(boxes), {}, {}, 1u << 20};
  StepStats stats;
  for (const std::size_t pieces : {0, 1, 2, 200}) {
    Counted work(pieces);
    input.beside = &work;
    gpu->step(input, stats);
    for (const std::atomic<int>& times : work.times) EXPECT_EQ(times, 1) << pieces;
  }
}

}  // namespace
}  // namespace lbvh
