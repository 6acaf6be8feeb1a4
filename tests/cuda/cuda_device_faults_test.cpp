// SPDX-License-Identifier: Zlib
// Tests a DevicePairFinder on a device whose calls fail. cuda_faults.sh injects the errors. Without
// injected errors this is an ordinary test. Skipped if there is no device.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "device_arrays.cuh"
#include "device_scene_asking.h"

namespace lbvh {
namespace {

using test::DeviceArrays;
using test::Random;
using test::SceneModel;

/// Runs steps as an engine would that continues after an error.
class Engine {
 public:
  /// After a search that throws, the next search must be right. It reports all pairs as added,
  /// because the engine may have dropped its list.
  void step(const SceneModel& model) {
    const test::SceneAnswer expected = answerOf(model);
    DeviceArrays memory;
    const DeviceScene scene = put(memory, model);
    DeviceRequest request;
    request.changes = request.countsByWorld = true;
    const test::Pairs before = std::exchange(last_, {});
    const DeviceLists lists = finder_.find(scene, request, memory.stream());
    last_ = expected.pairs;
    memory.wait();
    const test::Found found = fetch(memory, lists, scene, request);
    if (found.report.has(DeviceError::pairsTruncated)) {
      last_ = {};
      return step(model);
    }
    EXPECT_EQ(found.pairs, expected.pairs);
    EXPECT_EQ(found.byWorld, expected.byWorld);
    EXPECT_EQ(found.report.errors, expected.errors);
    EXPECT_EQ(found.added, test::without(expected.pairs, before));
    EXPECT_EQ(found.removed, test::without(before, expected.pairs));
    askRays(memory, model);
  }

 private:
  void askRays(DeviceArrays& memory, const SceneModel& model) {
    Random random(401);
    const std::vector<Ray> rays = test::randomRays(20, random);
    std::vector<RayHit> hits(rays.size());
    RayHit* const there = memory.put(hits);
    finder_.closestHits({{memory.put(rays), rays.size()}, nullptr}, there, memory.stream());
    memory.wait();
    EXPECT_EQ(memory.get(there, rays.size()), closestOf(model, rays, {}));
  }

  DevicePairFinder finder_;
  test::Pairs last_;  ///< pairs of the last search, if that did not throw
};

/// Whether a kernel has faulted. After a fault, no call works on the device.
bool isLost() {
  cudaGetLastError();
  for (int attempt = 0; attempt < 2; ++attempt)
    if (cudaStreamSynchronize(nullptr) == cudaSuccess) return false;
  cudaGetLastError();
  return true;
}

using CudaDeviceFaults = test::OnCuda;

TEST_F(CudaDeviceFaults, SearchesAreRightWhateverFails) {
  Random random(400);
  std::unique_ptr<Engine> engine;
  int failures = 0;
  for (const std::size_t boxes : {40u, 90u, 60u}) {
    const SceneModel model = test::steadyScene(boxes, 3, random);
    for (;;) {
      try {
        if (engine == nullptr) engine = std::make_unique<Engine>();
        engine->step(model);
        break;
      } catch (const std::exception& error) {
        if (isLost()) return;  // every call fails then
        if (std::string(error.what()).rfind("CUB", 0) == 0)
          return;  // these errors are permanent (space.cuh)
        ASSERT_LT(++failures, 3) << error.what();
      }
    }
  }
  engine.reset();
  cudaGetLastError();
}

}  // namespace
}  // namespace lbvh
