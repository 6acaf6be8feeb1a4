// SPDX-License-Identifier: Zlib
// Tests DevicePairFinder's searches and queries on the device: the checks that also run on the
// host, and tests of captured streams and allocators. Skipped if there is no device.
#include <gtest/gtest.h>

#include <cmath>
#include "device_arrays.cuh"
#include "device_edge_checks.h"
#include "device_query_checks.h"
#include "device_scene_checks.h"
#include "device_scene_faults.h"

namespace lbvh {
namespace {

using test::Accountant;
using test::DeviceArrays;
using test::endCapture;
using test::Indices;
using test::Pairs;
using test::Random;
using test::SceneModel;

using CudaDeviceScene = test::WithDeviceArrays;
using CudaDeviceQueries = test::WithDeviceArrays;

TEST_F(CudaDeviceScene, FindsThePairsOfTheModel) { test::findsWhatTheModelSays(*memory_, {}, 100); }
TEST_F(CudaDeviceScene, WorksWithEachArrayAlone) { test::needsNothingElse(*memory_, {}); }
TEST_F(CudaDeviceScene, AcceptsAbsentArrays) { test::takesWhatIsNotThere(*memory_, {}); }
TEST_F(CudaDeviceScene, ListsAllRemovedPairs) { test::listsAllRemovedPairs(*memory_, {}); }
TEST_F(CudaDeviceScene, AddsDisplacementsBeforeMargins) { test::sweepsBeforeItGrows(*memory_, {}); }
TEST_F(CudaDeviceScene, StopsOnlyBeyondMaxPairs) { test::stopsOnlyBeyondItsLimit(*memory_, {}); }
TEST_F(CudaDeviceScene, AllLayoutsAgree) { test::allFormsAgree(*memory_, {}, 24); }
TEST_F(CudaDeviceScene, ReportsChanges) { test::tellsWhatHasChanged(*memory_, {}); }
TEST_F(CudaDeviceScene, KeepsPreviousPairsWhateverTheCapacity) {
  test::keepsWhateverTheRoomIs(*memory_, {});
}
TEST_F(CudaDeviceScene, ReservingWritesNothing) { test::reservingWritesNothing(*memory_, {}); }
TEST_F(CudaDeviceScene, CallerMayOwnTheLists) {
  test::callerOwnsTheLists(*memory_, {});
  test::callerOwnsTheNeighbours(*memory_, {});
  test::callerOwnsTheChanges(*memory_, {});
}
TEST_F(CudaDeviceScene, HasTheReservedCapacity) { test::hasTheRoomThatWasReserved(*memory_, {}); }
TEST_F(CudaDeviceScene, RefusesBadInput) {
  test::refusesBadScenes(*memory_, {});
  test::refusesBadRequests(*memory_, {});
  test::refusesBadQueries(*memory_, {});
  test::refusesHalfAnAllocator(*memory_, {});
}
TEST_F(CudaDeviceScene, ReportsErrorsInTheArrays) {
  test::reportsWhatOnlyTheDeviceSees(*memory_, {});
}

TEST_F(CudaDeviceScene, ReportsNanInPackedBoxes) { test::reportsNanInPackedBoxes(*memory_, {}); }

TEST_F(CudaDeviceQueries, StopOnlyBeyondMaxPairs) {
  test::stopsBatchesOnlyBeyondTheLimit(*memory_, {});
}
TEST_F(CudaDeviceQueries, HaveTheHitsOfTheModel) { test::answersQueries(*memory_, {}, 40); }
TEST_F(CudaDeviceQueries, HitNothingBeforeASearch) { test::hitsNothingBeforeASearch(*memory_, {}); }
TEST_F(CudaDeviceQueries, KeepTheLastSearchWhenReserved) {
  test::reservesQueriesAfterASearch(*memory_, {});
}
TEST_F(CudaDeviceQueries, WithoutWorldsAllBoxesAreInWorldZero) {
  test::withoutWorldsAllBoxesAreInWorldZero(*memory_, {});
}
TEST_F(CudaDeviceQueries, SmallestIndexWinsATie) { test::theLeastIndexWinsATie(*memory_, {}); }
TEST_F(CudaDeviceQueries, CallerMayOwnTheHits) { test::callerOwnsTheHits(*memory_, {}); }

TEST_F(CudaDeviceScene, RefusesArraysInHostMemory) {
  int device = 0, readsAll = 0;
  cudaCheck(cudaGetDevice(&device));
  cudaCheck(cudaDeviceGetAttribute(&readsAll, cudaDevAttrPageableMemoryAccess, device));
  if (readsAll != 0) GTEST_SKIP() << "this device reads the host's memory";
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

/// An engine's step: a search, then rays.
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

  /// Replaces the contents of the arrays of boxes, rays, worlds and filters, and launches the
  /// graph.
  void replay() {
    const SceneModel model = test::steadyScene(kBoxes, kWorlds, random_);
    const std::vector<Ray> rays = test::randomRays(kRays, random_);
    const Indices worlds = test::randomWorlds(kRays, model, false, random_);
    memory_.overwrite(scene_.min.data, model.packed());
    memory_.overwrite(scene_.boxCount, model.count);
    memory_.overwrite(scene_.worlds, model.worlds);
    memory_.overwrite(scene_.filters, model.filters);
    memory_.overwrite(batch_.rays.data(), rays);
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

TEST_F(CudaDeviceScene, CapturedStepReplaysAHundredTimes) {
  CapturedStep step(*memory_);
  step.capture();
  for (int launch = 0; launch < 100; ++launch) {
    SCOPED_TRACE(launch);
    step.replay();
  }
}

/// Runs a search with changes in a graph, and other searches between launches of the graph.
class CapturedChanges {
 public:
  explicit CapturedChanges(DeviceArrays& memory)
      : memory_(memory), model_(test::steadyScene(60, 3, random_)), scene_(put(memory, model_)) {
    request_.changes = true;
    finder_.reserve(scene_, request_, 3000);
    cudaCheck(cudaStreamBeginCapture(memory_.stream(), cudaStreamCaptureModeGlobal));
    lists_ = finder_.find(scene_, request_, memory_.stream());
    graph_ = endCapture(memory_.stream());
  }

  void launch() {
    cudaCheck(cudaGraphLaunch(graph_.get(), memory_.stream()));
    memory_.wait();
    agrees(fetch(memory_, lists_, scene_, request_), answerOf(model_).pairs);
  }
  void findAmong(std::size_t boxes) {
    const SceneModel model = test::steadyScene(boxes, 3, random_);
    agrees(ask(memory_, finder_, put(memory_, model), request_), answerOf(model).pairs);
  }
  void findWithoutChanges(std::size_t boxes) {
    const SceneModel model = test::steadyScene(boxes, 3, random_);
    EXPECT_EQ(askForAll(memory_, finder_, put(memory_, model), {}).pairs, answerOf(model).pairs);
  }
  void cannotFindAmong(std::size_t boxes) {
    const DeviceScene large = put(memory_, test::steadyScene(boxes, 3, random_));
    EXPECT_THROW(finder_.find(large, request_, memory_.stream()), std::length_error);
  }

 private:
  void agrees(const test::Found& found, const Pairs& expected) {
    EXPECT_EQ(found.pairs, expected);
    EXPECT_EQ(found.added, test::without(expected, before_));
    EXPECT_EQ(found.removed, test::without(before_, expected));
    EXPECT_EQ(found.report.errors, 0u);
    before_ = expected;
  }

  DeviceArrays& memory_;
  DevicePairFinder finder_;
  Random random_{232};
  SceneModel model_;
  DeviceScene scene_;
  DeviceRequest request_;
  DeviceLists lists_;
  GraphExec graph_;
  Pairs before_;
};

TEST_F(CudaDeviceScene, GraphReportsChangesSinceAnySearch) {
  CapturedChanges step(*memory_);
  for (const std::size_t boxes : {20u, 60u, 40u, 58u}) {
    SCOPED_TRACE(boxes);
    step.launch();
    step.findAmong(boxes);
    step.findWithoutChanges(5 * boxes);  // grows the finder's memory
  }
  step.launch();
}

TEST_F(CudaDeviceScene, FailedSearchDoesNotMoveTheMemoryOfAGraph) {
  CapturedChanges step(*memory_);
  step.launch();
  step.cannotFindAmong(500);
  step.launch();
}

TEST_F(CudaDeviceScene, CaptureHasOnlyReservedMemory) {
  const DeviceScene scene = put(*memory_, test::crowd(20));
  DeviceRequest neighbours;
  neighbours.layout = PairLayout::neighbours;
  DevicePairFinder finder;
  finder.reserve(scene, {}, 500);
  CUstream_st* const stream = memory_->stream();
  cudaCheck(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_THROW(finder.find(scene, neighbours, stream), std::length_error);
  EXPECT_THROW(finder.allHits(RayBatch{}, {}, stream), std::length_error);
  endCapture(stream);
}

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

/// After a search has thrown, the next one reports all pairs as added, and only its own errors.
TEST_F(CudaDeviceScene, ReportsAllPairsAsAddedAfterASearchThatThrew) {
  Random random(233);
  const SceneModel good = test::steadyScene(40, 3, random);
  SceneModel bad = test::steadyScene(700, 3, random);
  bad.count = {};
  bad.boxes[3].max[0] = std::nanf("");
  DeviceRequest request;
  request.changes = true;
  bool hasThrown = true;
  for (std::size_t more = 0; hasThrown; ++more) {
    SCOPED_TRACE(more);
    Accountant accountant;
    DeviceOptions options;
    options.allocator = accountant.allocator();
    options.initialPairCapacity = 2000;
    DevicePairFinder finder(options);
    const DeviceScene scene = put(*memory_, good), large = put(*memory_, bad);
    ask(*memory_, finder, scene, request);
    accountant.most = accountant.handedOut + more;
    try {
      finder.find(large, request, memory_->stream());
      hasThrown = false;
    } catch (const std::runtime_error&) {
      accountant.most = ~std::size_t{0};
      const test::Found found = ask(*memory_, finder, scene, request);
      EXPECT_EQ(found.report.errors, 0u);
      EXPECT_EQ(found.added, answerOf(good).pairs);
      EXPECT_TRUE(found.removed.empty());
    }
  }
}

TEST_F(CudaDeviceScene, ThrowsIfTheAllocatorReturnsNull) {
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
