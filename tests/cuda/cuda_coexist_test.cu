// SPDX-License-Identifier: Zlib
// Tests that the library does not disturb a program that uses CUDA itself: its captures, its
// pending errors and its current device. Skipped if there is no device. The interpreter has two
// devices here, and freeing memory waits for the device.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "broadphase/cuda/step.cuh"
#include "broadphase/cuda/step.h"
#include "broadphase/device_pair_finder.h"
#include "broadphase/pair_finder.h"
#include "device_boxes.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::OnDevice;
using test::Pairs;
using test::pairsOf;
using test::pairsOnHost;
using test::Random;
using test::reserve;
using test::toVector;
using test::view;

// Must run before the first CUDA call.
[[maybe_unused]] const int kInterpreter =
    setenv("PTXVM_DEVICES", "2", 0) | setenv("PTXVM_FREE_SYNCS", "1", 0);

// A finder starts no device except its own, because a context takes half a gigabyte of device
// memory. The test runs in its own process, in which nothing has used CUDA before.
TEST(CudaCoexistDeathTest, FinderStartsOnlyItsOwnDevice) {
  const auto control =
      reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
  if (control == nullptr) GTEST_SKIP() << "a real device does not say whether it was started";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [control] {
    Options options;
    options.device = 1;
    options.backend = Backend::cuda;
    PairFinder finder(options);
    Random random(104);
    const Boxes boxes = test::boxSets()[0].make(100, random);
    for (int i = 0; i < 4; ++i) finder.update(view(boxes));
    const bool isOnGpu = finder.stats().backend != "host";
    return isOnGpu && control("is_started", 1) == 0 && control("is_started", 0) != 0;
  };
  EXPECT_EXIT(exit(use() ? 0 : 1), testing::ExitedWithCode(0), "");
}

class CudaCoexist : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = whyUnavailable(Backend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
    cudaGetDeviceCount(&devices_);
  }
  void TearDown() override {
    cudaGetLastError();
    cudaSetDevice(0);
  }

  static void elsewhere(const std::function<void()>& f) { std::thread(f).join(); }

  static Options onDevice(int device) {
    Options options;
    options.backend = Backend::cuda;
    options.threads = 1;
    options.device = device;
    return options;
  }

  static Pairs find(DevicePairFinder& finder, const OnDevice<Aabb>& boxes, cudaStream_t stream) {
    finder.find(DeviceScene::of(boxes.view()), {}, stream);
    cudaCheck(cudaStreamSynchronize(stream));
    const DeviceLists found = finder.find(DeviceScene::of(boxes.view()), {}, stream);
    cudaCheck(cudaStreamSynchronize(stream));
    return pairsOf(found);
  }

  /// Runs eight steps with each scene, so that steps are recorded and replayed. The number of boxes
  /// may grow or shrink from scene to scene.
  static void runPipeline(const Options& options, const std::vector<Boxes>& scenes) {
    const auto pipeline = makeCudaPipeline(options);
    StepStats stats;
    for (const Boxes& boxes : scenes)
      for (int round = 0; round < 8; ++round)
        pipeline->step({view(boxes), {}, {}, options.maxPairs}, stats);
    EXPECT_EQ(stats.pairs, pairsOnHost(scenes.back()).size());
    EXPECT_EQ(deviceOf(pipeline->added().data()), options.device);
  }

  static int deviceOf(const void* p) {
    cudaPointerAttributes where{};
    cudaCheck(cudaPointerGetAttributes(&where, p));
    return where.device;
  }

  int devices_ = 0;
};

TEST_F(CudaCoexist, DoesNotDisturbTheProgramsCaptures) {
  Random random(101);
  std::vector<Boxes> scenes;
  for (const std::size_t n : {50u, 900u, 200u})
    scenes.push_back(test::boxSets()[0].make(n, random));
  OnDevice<Aabb> there(scenes[1]);
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaCheck(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaCheck(cudaStreamBeginCapture(stream, mode));
    elsewhere([&] { runPipeline(onDevice(0), scenes); });
    elsewhere([&] {
      DevicePairFinder finder;
      for (const std::size_t n : {30u, 900u, 800u})
        finder.find(DeviceScene::of({there.view().data(), n}), {}, cudaStreamPerThread);
      reserve(finder, 1000, 100000);
      finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
    });
    {
      DevicePairFinder finder;  // used on the capturing thread, but on another stream
      finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
      finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
      reserve(finder, 1000, 100000);
    }
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaCoexist, PendingErrorStaysPending) {
  Random random(102);
  const Boxes boxes = test::boxSets()[0].make(200, random);
  const Pairs expected = pairsOnHost(boxes);
  const OnDevice<Aabb> there(boxes);
  cudaStream_t stream = nullptr;
  cudaCheck(cudaStreamCreate(&stream));
  ASSERT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);  // this error is left pending
  {
    EXPECT_EQ(whyNoCuda(0), "");
    EXPECT_EQ(currentCudaDevice(), 0);
    DevicePairFinder finder;
    reserve(finder, 200, 5000);
    EXPECT_EQ(find(finder, there, stream), expected);
    try {
      finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
      ADD_FAILURE() << "no other thread can use this stream";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(cudaGetErrorString(cudaErrorInvalidDevice)),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaStreamDestroy(stream);
}

/// The interpreter's control function, or null on a real device.
int (*control())(const char*, long) {
  return reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
}

TEST_F(CudaCoexist, LeavesNoErrorPending) {
  if (control() == nullptr) GTEST_SKIP() << "a real device has no errors on demand";
  Random random(103);
  const Boxes boxes = test::boxSets()[0].make(100, random);
  const OnDevice<Aabb> there(boxes);
  DevicePairFinder finder;
  finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
  control()("events_pending", 1);
  finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "not ready is no error";
  control()("fail_next_any", cudaErrorMemoryAllocation);
  EXPECT_THROW(finder.find(DeviceScene::of(there.view()), {}, cudaStreamPerThread),
               std::runtime_error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(find(finder, there, cudaStreamPerThread), pairsOnHost(boxes));
}

// Sorts both kinds of keys, and also more keys than one kernel sorts.
TEST_F(CudaCoexist, SpaceLoadsItsSortKernelsInAdvance) {
  if (control() == nullptr || devices_ < 2)
    GTEST_SKIP() << "loads of kernels cannot be refused here";
  cudaCheck(cudaSetDevice(1));
  cudaCheck(cudaDeviceReset());  // so that nothing is loaded
  CudaSpace space;
  space.loadKernels();
  const auto sort = [&](auto key) {
    for (const std::size_t n : {300u, 5000u}) {
      const OnDevice<decltype(key)> keys(std::vector(n, key)), sorted(std::vector(n, key));
      const std::vector<std::uint32_t> zeros(n);
      const OnDevice<std::uint32_t> ids(zeros), order(zeros);
      const View<decltype(key)> in{writable(keys), n}, out{writable(sorted), n};
      const View<std::uint32_t> values{writable(ids), n}, sortedValues{writable(order), n};
      space.sortInto(in, values, out, sortedValues, 0, 30);
      if constexpr (kCubMerges) space.mergeSort(in, values);
      space.wait();
    }
  };
  control()("loads_forbidden", 1);
  EXPECT_NO_THROW(sort(std::uint32_t{}));
  EXPECT_NO_THROW(sort(std::uint64_t{}));
  control()("loads_forbidden", 0);
}

TEST_F(CudaCoexist, FindersWorkOnTheirDeviceFromAnyThread) {
  if (devices_ < 2) GTEST_SKIP() << "there is only one device";
  Random random(104);
  const Boxes boxes = test::boxSets()[0].make(300, random);
  const Pairs expected = pairsOnHost(boxes);
  cudaCheck(cudaSetDevice(1));
  const OnDevice<Aabb> onOne(boxes);
  cudaStream_t streamOfOne = nullptr;
  cudaCheck(cudaStreamCreate(&streamOfOne));
  EXPECT_EQ(currentCudaDevice(), 1);
  auto current = std::make_unique<DevicePairFinder>();
  cudaCheck(cudaSetDevice(0));
  const OnDevice<Aabb> onZero(boxes);
  DeviceOptions asked;
  asked.device = 1;
  DevicePairFinder other(asked), zero;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(find(zero, onZero, nullptr), expected);
    EXPECT_EQ(find(*current, onOne, streamOfOne), expected);
    elsewhere([&] { EXPECT_EQ(find(other, onOne, streamOfOne), expected); });
  }
  cudaSetDevice(1000);  // leaves an error pending, so that finders use their own threads
  EXPECT_EQ(find(other, onOne, streamOfOne), expected);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  current.reset();
  int device = -1;
  cudaCheck(cudaGetDevice(&device));
  EXPECT_EQ(device, 0) << "is still the current device";
}

TEST_F(CudaCoexist, PipelinesWorkOnTheirDevice) {
  if (devices_ < 2) GTEST_SKIP() << "there is only one device";
  Random random(105);
  const std::vector<Boxes> scenes = {test::boxSets()[0].make(300, random)};
  for (const int device : {1, 0, 1}) elsewhere([&] { runPipeline(onDevice(device), scenes); });
  elsewhere([&] {
    cudaCheck(cudaSetDevice(1));
    const auto pipeline = makeCudaPipeline(onDevice(-1));
    StepStats stats;
    // The first round has more changes than the mapped list can hold.
    for (int round = 0; round < 2; ++round)
      pipeline->step({view(scenes[0]), {}, {}, 1u << 20}, stats);
    EXPECT_EQ(deviceOf(pipeline->added().data()), 1) << "the current device";
  });
}

// A PairFinder makes its CUDA calls on its own thread, even if different threads call it.
TEST_F(CudaCoexist, PairFinderDoesNotAffectTheCallersThread) {
  Random random(106);
  const Boxes boxes = test::boxSets()[0].make(300, random);
  const Pairs expected = pairsOnHost(boxes);
  ASSERT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);  // this error is left pending
  {
    EXPECT_EQ(whyUnavailable(Backend::cuda), "");
    PairFinder last(onDevice(devices_ - 1)), current(onDevice(-1));
    for (int round = 0; round < 8; ++round) {
      const auto update = [&] {
        for (PairFinder* finder : {&last, &current}) {
          finder->update(view(boxes));
          EXPECT_EQ(toVector(finder->pairs()), expected);
          EXPECT_NE(finder->stats().backend, "host") << finder->stats().reason;
        }
      };
      if (round % 2 == 0)
        update();
      else
        elsewhere(update);
    }
    const bool isNamed = last.stats().backend.find("device 1") != std::string::npos;
    if (devices_ == 2) EXPECT_EQ(isNamed, last.stats().backend != current.stats().backend);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice) << "still pending";
  int device = -1;
  cudaCheck(cudaGetDevice(&device));
  EXPECT_EQ(device, 0) << "is still the current device";
}

TEST_F(CudaCoexist, PairFinderUsesTheCurrentDevice) {
  if (devices_ < 2) GTEST_SKIP() << "there is only one device";
  cudaCheck(cudaSetDevice(1));
  PairFinder one(onDevice(-1));
  cudaCheck(cudaSetDevice(0));
  PairFinder zero(onDevice(-1));
  EXPECT_EQ(one.stats().backend, cudaDeviceName(1));
  EXPECT_EQ(zero.stats().backend, cudaDeviceName(0));
  EXPECT_THROW(PairFinder{onDevice(devices_)}, std::runtime_error);
}

TEST_F(CudaCoexist, ReportsAnUnknownDevice) {
  for (const int device : {devices_, -2}) {
    EXPECT_NE(whyNoCuda(device).find("no device " + std::to_string(device)), std::string::npos)
        << whyNoCuda(device);
  }
  DeviceOptions asked;
  asked.device = devices_;
  EXPECT_THROW(DevicePairFinder{asked}, std::runtime_error);
  elsewhere([&] { EXPECT_THROW(makeCudaPipeline(onDevice(devices_)), std::runtime_error); });
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace lbvh
