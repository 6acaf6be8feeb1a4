// The CUDA space's stages element for element against the host's: codes, order, nodes, ropes.
// Skipped where there is no device.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "broadphase/exec/host/space.h"
#include "broadphase/pipelines/cuda.cuh"
#include "broadphase/pipelines/cuda.h"
#include "broadphase/pipelines/host.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

class CudaStages : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = whyNoCuda();
    if (!why.empty()) GTEST_SKIP() << why;
  }

  template <class T>
  static std::vector<T> download(View<const T> view) {
    std::vector<T> host(view.size);
    if (!view.empty())
      cudaCheck(cudaMemcpy(host.data(), view.data, view.size * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

  template <class T>
  static bool sameBytes(const std::vector<T>& a, View<const T> b) {
    return a.size() == b.size &&
           (a.empty() || std::memcmp(a.data(), b.data, a.size() * sizeof(T)) == 0);
  }

  static void expectSameTree(const Boxes& boxes) {
    CudaPipeline gpu{Options{}};
    const auto host = makeHostPipeline(1, simdKernels());
    StepStats gpuStats, hostStats;
    gpu.buildTree(view(boxes), gpuStats);
    host->buildTree(view(boxes), hostStats);
    EXPECT_EQ(gpuStats.mortonBits, hostStats.mortonBits);
    EXPECT_TRUE(sameBytes(download(gpu.tree().nodes), host->tree().nodes));
    EXPECT_TRUE(sameBytes(download(gpu.tree().oversizedBoxes), host->tree().oversizedBoxes));
  }
};

TEST_F(CudaStages, TreesAreTheSameNodeForNode) {
  Random random(91);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 12486u}) {
    SCOPED_TRACE(n);
    expectSameTree(test::boxSets()[0].make(n, random));
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    for (const std::size_t n : {40u, 333u}) expectSameTree(set.make(n, random));
  }
}

template <class Key>
std::vector<Key> codesOnHost(const Boxes& boxes, const Grid& grid) {
  std::vector<Key> keys;
  const AssignCodes<Key> codes{view(boxes), &grid, nullptr, nullptr, nullptr};
  for (const Aabb& box : boxes) keys.push_back(codes.key(box));
  return keys;
}

template <class Key>
void expectSameCodesAndOrder(const Boxes& boxes, const Grid& grid) {
  const std::size_t n = boxes.size();
  CudaSpace space;
  UploadBuffer<Aabb> upload;
  DeviceBuffer<Grid> deviceGrid;
  DeviceBuffer<Key> keys, spareKeys;
  DeviceBuffer<std::uint32_t> ids, spareIds;
  DeviceBuffer<std::uint32_t> arrivals;
  cudaCheck(cudaMemcpy(deviceGrid.ensure(1).data, &grid, sizeof grid, cudaMemcpyHostToDevice));
  space.forEach(
      n, AssignCodes<Key>{space.upload(view(boxes), upload), deviceGrid.data(), keys.ensure(n).data,
                          ids.ensure(n).data, arrivals.ensure(n).data});
  cudaCheck(cudaDeviceSynchronize());
  std::vector<Key> found(n), expected = codesOnHost<Key>(boxes, grid);
  cudaCheck(cudaMemcpy(found.data(), keys.data(), n * sizeof(Key), cudaMemcpyDeviceToHost));
  ASSERT_EQ(found, expected);

  space.sortByKey(View<Key>{keys.data(), n}, View<std::uint32_t>{ids.data(), n},
                  spareKeys.ensure(n), spareIds.ensure(n), AssignCodes<Key>::kKeyBits);
  cudaCheck(cudaDeviceSynchronize());
  std::vector<std::uint32_t> order(n), expectedOrder(n), spareOrder(n);
  std::vector<Key> spare(n);
  cudaCheck(cudaMemcpy(order.data(), ids.data(), n * 4, cudaMemcpyDeviceToHost));
  for (std::uint32_t i = 0; i < n; ++i) expectedOrder[i] = i;
  HostSpace(1).sortByKey(View<Key>{expected.data(), n},
                         View<std::uint32_t>{expectedOrder.data(), n}, View<Key>{spare.data(), n},
                         View<std::uint32_t>{spareOrder.data(), n}, AssignCodes<Key>::kKeyBits);
  EXPECT_EQ(order, expectedOrder);
}

TEST_F(CudaStages, CodesAndOrderAreTheSame) {
  Random random(92);
  for (const std::size_t n : {1u, 2u, 3u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 12486u}) {
    SCOPED_TRACE(n);
    Grid grid;
    grid.perLength = 0.05f;
    expectSameCodesAndOrder<std::uint32_t>(test::boxSets()[0].make(n, random), grid);
    expectSameCodesAndOrder<std::uint64_t>(Boxes(n, test::boxAt(1, 2, 3, 1)), grid);
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(500, random);
    Grid grid;
    grid.perLength = 0.05f;
    expectSameCodesAndOrder<std::uint32_t>(boxes, grid);
    expectSameCodesAndOrder<std::uint64_t>(boxes, grid);
  }
}

TEST_F(CudaStages, LaunchesAreRecordedTheSecondTimeAndReplayedFromTheThird) {
  CudaSpace space;
  GraphRecordings<int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data;
  int calls = 0;
  const auto repeat = [&](std::uintptr_t name, int times) {
    for (int i = 0; i < times; ++i) {
      report[0].pairs = name + static_cast<std::uintptr_t>(i);
      LaunchKey key{};
      key[3] = name;
      const int result = space.replay(recordings, key, [&] {
        space.forEach(1, Report{&report[0], &report[1]});
        return ++calls, static_cast<int>(name);
      });
      space.wait();
      EXPECT_EQ(result, static_cast<int>(name));
      EXPECT_EQ(report[1].pairs, report[0].pairs);
    }
  };
  repeat(100, 5);
  EXPECT_EQ(calls, 2);
  repeat(200, 5);
  EXPECT_EQ(calls, 4);
  repeat(100, 5);
  EXPECT_EQ(calls, 4) << "the first is still known";
  for (std::uintptr_t name = 300; name < 400; name += 10) repeat(name, 1);
  repeat(100, 1);
  EXPECT_EQ(calls, 15) << "and now forgotten";
}

TEST_F(CudaStages, AnErrorInARecordingLeavesTheStreamUsable) {
  CudaSpace space;
  GraphRecordings<int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data;
  bool fails = false;
  LaunchKey key{};
  key[0] = 1;
  const auto step = [&] {
    return space.replay(recordings, key, [&] {
      space.forEach(1, Report{&report[0], &report[1]});
      if (fails) cudaCheck(cudaErrorMemoryAllocation);
      return 1;
    });
  };
  step();
  fails = true;
  try {
    step();
    FAIL() << "no error";
  } catch (const SpaceError& error) {
    EXPECT_FALSE(error.isSticky) << error.what();
  }
  fails = false;
  for (report[0].pairs = 1; report[0].pairs < 4; ++report[0].pairs) {
    step();
    space.wait();
    EXPECT_EQ(report[1].pairs, report[0].pairs);
  }
}

}  // namespace
}  // namespace lbvh
