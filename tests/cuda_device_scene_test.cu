// SPDX-License-Identifier: Zlib
// DevicePairFinder's searches and queries on the device: what they give on the host, and what
// only a device has, captured streams and an allocator. Skipped where there is no device.
#include <gtest/gtest.h>

#include <map>

#include "broadphase/exec/cuda/graphs.cuh"
#include "device_arrays.cuh"
#include "device_query_checks.h"
#include "device_scene_checks.h"
#include "device_scene_faults.h"

namespace lbvh {
namespace {

using test::DeviceArrays;
using test::Indices;
using test::Pairs;
using test::Random;
using test::SceneModel;

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = whyUnavailable(Backend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
    memory_ = std::make_unique<DeviceArrays>();
  }
  void TearDown() override {
    memory_.reset();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  std::unique_ptr<DeviceArrays> memory_;
};
using CudaDeviceScene = CudaDevice;
using CudaDeviceQueries = CudaDevice;

TEST_F(CudaDeviceScene, FindsWhatTheModelSays) { test::findsWhatTheModelSays(*memory_, {}, 100); }
TEST_F(CudaDeviceScene, NeedsNothingElse) { test::needsNothingElse(*memory_, {}); }
TEST_F(CudaDeviceScene, SweepsBeforeItGrows) { test::sweepsBeforeItGrows(*memory_, {}); }
TEST_F(CudaDeviceScene, AllFormsAgree) { test::allFormsAgree(*memory_, {}, 24); }
TEST_F(CudaDeviceScene, TellsWhatHasChanged) { test::tellsWhatHasChanged(*memory_, {}); }
TEST_F(CudaDeviceScene, TheCallerMayOwnTheLists) {
  test::callerOwnsTheLists(*memory_, {});
  test::callerOwnsTheNeighbours(*memory_, {});
  test::callerOwnsTheChanges(*memory_, {});
}
TEST_F(CudaDeviceScene, HasTheRoomThatWasReserved) {
  test::hasTheRoomThatWasReserved(*memory_, {});
}
TEST_F(CudaDeviceScene, RefusesBadInput) {
  test::refusesBadScenes(*memory_, {});
  test::refusesBadRequests(*memory_, {});
  test::refusesBadQueries(*memory_, {});
  test::refusesHalfAnAllocator(*memory_, {});
}
TEST_F(CudaDeviceScene, ReportsWhatOnlyTheDeviceSees) {
  test::reportsWhatOnlyTheDeviceSees(*memory_, {});
}

TEST_F(CudaDeviceQueries, AreAnsweredAsTheModelSays) { test::answersQueries(*memory_, {}, 40); }
TEST_F(CudaDeviceQueries, HitNothingBeforeASearch) { test::hitsNothingBeforeASearch(*memory_, {}); }
TEST_F(CudaDeviceQueries, TheLeastIndexWinsATie) { test::theLeastIndexWinsATie(*memory_, {}); }
TEST_F(CudaDeviceQueries, TheCallerMayOwnTheHits) { test::callerOwnsTheHits(*memory_, {}); }

TEST_F(CudaDeviceScene, RefusesTheHostsArrays) {
  const test::Boxes boxes(3, test::boxAt(0, 0, 0, 1));
  const std::vector<Ray> rays(3);
  DevicePairFinder finder;
  EXPECT_THROW(finder.find(DeviceScene::of(test::view(boxes)), {}, memory_->stream()),
               std::invalid_argument);
  DeviceScene scene = DeviceScene::of({memory_->put(boxes), 3});
  const Indices bodies(3);
  scene.bodies = bodies.data();
  EXPECT_THROW(finder.find(scene, {}, memory_->stream()), std::invalid_argument);
  scene.bodies = nullptr;
  Pairs room(3);
  DeviceRequest request;
  request.pairs = {room.data(), 3};
  EXPECT_THROW(finder.find(scene, request, memory_->stream()), std::invalid_argument);
  EXPECT_THROW(finder.allHits(RayBatch{test::view(rays), nullptr}, {}, memory_->stream()),
               std::invalid_argument);
}

GraphExec endCapture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaCheck(cudaStreamEndCapture(stream, &graph));
  cudaCheck(cudaGraphInstantiate(&exec, graph, 0));
  cudaGraphDestroy(graph);
  return GraphExec(exec);
}

/// A step of an engine: a search, and rays after it.
class CapturedStep {
 public:
  static constexpr std::size_t kBoxes = 70, kRays = 12;
  static constexpr std::uint32_t kWorlds = 5;

  explicit CapturedStep(DeviceArrays& memory, const DeviceOptions& options = {})
      : memory_(memory), finder_(options) {
    request_.changes = request_.countsByWorld = true;
    scene_ = put(memory, test::steadyScene(kBoxes, kWorlds, random_));
    batch_ = {{memory.put(std::vector<Ray>(kRays)), kRays}, memory.put(Indices(kRays))};
    closest_ = memory.put(std::vector<RayHit>(kRays));
    finder_.reserve(scene_, request_, 3000);
    finder_.reserveQueries(kRays, kRays * kBoxes);
  }

  void capture() {
    cudaCheck(cudaStreamBeginCapture(memory_.stream(), cudaStreamCaptureModeGlobal));
    lists_ = finder_.find(scene_, request_, memory_.stream());
    finder_.closestHits(batch_, closest_, memory_.stream());
    hits_ = finder_.allHits(batch_, {}, memory_.stream());
    graph_ = endCapture(memory_.stream());
  }

  /// With other boxes, rays, worlds and filters where the last ones were.
  void replay() {
    const SceneModel model = test::steadyScene(kBoxes, kWorlds, random_);
    const std::vector<Ray> rays = test::randomRays(kRays, random_);
    const Indices worlds = test::randomWorlds(kRays, model, false, random_);
    memory_.overwrite(scene_.lower.data, model.packed());
    memory_.overwrite(scene_.count, model.count);
    memory_.overwrite(scene_.worlds, model.worlds);
    memory_.overwrite(scene_.filters, model.filters);
    memory_.overwrite(batch_.rays.data, rays);
    memory_.overwrite(batch_.worlds, worlds);
    cudaCheck(cudaGraphLaunch(graph_.get(), memory_.stream()));
    memory_.wait();
    agreesWith(model);
    EXPECT_EQ(memory_.get(closest_, kRays), closestOf(model, rays, worlds));
    EXPECT_EQ(fetchHits(memory_, hits_, kRays).of, hitsOf(model, rays, worlds));
  }

 private:
  void agreesWith(const SceneModel& model) {
    const test::SceneAnswer expected = answerOf(model);
    const test::Found found = fetch(memory_, lists_, scene_, request_);
    agrees(found, expected, model);
    EXPECT_EQ(found.pairs, expected.pairs);
    EXPECT_EQ(found.byWorld, expected.byWorld);
    EXPECT_EQ(found.added, test::without(expected.pairs, before_));
    EXPECT_EQ(found.removed, test::without(before_, expected.pairs));
    before_ = expected.pairs;
  }

  DeviceArrays& memory_;
  DevicePairFinder finder_;
  Random random_{231};
  DeviceScene scene_;
  DeviceRequest request_;
  RayBatch batch_;
  RayHit* closest_ = nullptr;
  DeviceLists lists_;
  DeviceHits hits_;
  GraphExec graph_;
  Pairs before_;
};

TEST_F(CudaDeviceScene, ACapturedStepReplaysAHundredTimes) {
  CapturedStep step(*memory_);
  step.capture();
  for (int launch = 0; launch < 100; ++launch) {
    SCOPED_TRACE(launch);
    step.replay();
  }
}

/// Counts what it hands out, and remembers how large each is.
struct Accountant {
  std::map<void*, std::size_t> out;
  std::size_t handedOut = 0, wrong = 0;

  DeviceAllocator allocator() {
    return {[](std::size_t bytes, CUstream_st*, void* user) {
              return static_cast<Accountant*>(user)->allocate(bytes);
            },
            [](void* memory, std::size_t bytes, CUstream_st*, void* user) {
              static_cast<Accountant*>(user)->release(memory, bytes);
            },
            this};
  }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) return nullptr;
    out[memory] = bytes;
    ++handedOut;
    return memory;
  }
  void release(void* memory, std::size_t bytes) {
    const auto found = out.find(memory);
    if (found == out.end() || found->second != bytes) ++wrong;
    if (found != out.end()) out.erase(found);
    cudaFree(memory);
  }
};

TEST_F(CudaDeviceScene, TakesMemoryFromTheAllocator) {
  Accountant accountant;
  DeviceOptions options;
  options.allocator = accountant.allocator();
  {
    CapturedStep step(*memory_, options);
    const std::size_t before = accountant.handedOut;
    EXPECT_GT(before, 0u);
    step.capture();
    step.replay();
    EXPECT_EQ(accountant.handedOut, before) << "all was reserved";
  }
  EXPECT_TRUE(accountant.out.empty());
  EXPECT_EQ(accountant.wrong, 0u);
  test::findsWhatTheModelSays(*memory_, options, 4);
  EXPECT_TRUE(accountant.out.empty()) << "after growing, too";
  EXPECT_EQ(accountant.wrong, 0u);
}

TEST_F(CudaDeviceScene, TellsWhenTheAllocatorHasNothing) {
  DeviceOptions options;
  options.allocator = {[](std::size_t, CUstream_st*, void*) -> void* { return nullptr; },
                       [](void*, std::size_t, CUstream_st*, void*) {}, nullptr};
  const DeviceScene scene = DeviceScene::of({memory_->put(test::Boxes(50)), 50});
  const auto search = [&] {
    DevicePairFinder finder(options);
    finder.find(scene, {}, memory_->stream());
  };
  EXPECT_THROW(search(), std::runtime_error);
}

}  // namespace
}  // namespace lbvh
