// SPDX-License-Identifier: Zlib
// A program that uses CUDA itself, and what it must not notice of us: its captures, its pending
// errors, its current device. Skipped where there is no device. On the interpreter there are two
// devices, and freeing memory waits for the device.
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
using test::toVector;
using test::view;

// Before anything of CUDA is called.
[[maybe_unused]] const int kInterpreter =
    setenv("PTXVM_DEVICES", "2", 0) | setenv("PTXVM_FREE_SYNCS", "1", 0);

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
    finder.find(boxes.view(), {}, stream);
    cudaCheck(cudaStreamSynchronize(stream));
    const DevicePairs found = finder.find(boxes.view(), {}, stream);
    cudaCheck(cudaStreamSynchronize(stream));
    return pairsOf(found);
  }

  /// Steps that grow, that are recorded and replayed, and that shrink.
  static void runPipeline(const Options& options, const std::vector<Boxes>& scenes) {
    const auto pipeline = makeCudaPipeline(options);
    StepStats stats;
    for (const Boxes& boxes : scenes)
      for (int round = 0; round < 8; ++round)
        pipeline->step({view(boxes), {}, {}, options.maxPairs}, stats);
    EXPECT_EQ(stats.pairs, pairsOnHost(scenes.back()).size());
    EXPECT_EQ(deviceOf(pipeline->pairs().data), options.device);
  }

  static int deviceOf(const void* p) {
    cudaPointerAttributes where{};
    cudaCheck(cudaPointerGetAttributes(&where, p));
    return where.device;
  }

  int devices_ = 0;
};

TEST_F(CudaCoexist, ACaptureOfTheProgramsIsNotDisturbed) {
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
        finder.find({there.view().data, n}, {}, cudaStreamPerThread);
      finder.reserve(1000, 100000);
      finder.find(there.view(), {}, cudaStreamPerThread);
    });
    {
      DevicePairFinder finder;  // on the capturing thread, but on another stream
      finder.find(there.view(), {}, cudaStreamPerThread);
      finder.find(there.view(), {}, cudaStreamPerThread);
      finder.reserve(1000, 100000);
    }
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaCoexist, APendingErrorStaysPending) {
  Random random(102);
  const Boxes boxes = test::boxSets()[0].make(200, random);
  const Pairs expected = pairsOnHost(boxes);
  const OnDevice<Aabb> there(boxes);
  cudaStream_t stream = nullptr;
  cudaCheck(cudaStreamCreate(&stream));
  ASSERT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);  // and nobody asks
  {
    EXPECT_EQ(whyNoCuda(0), "");
    EXPECT_EQ(currentCudaDevice(), 0);
    DevicePairFinder finder;
    finder.reserve(200, 5000);
    EXPECT_EQ(find(finder, there, stream), expected);
    try {
      finder.find(there.view(), {}, cudaStreamPerThread);
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

TEST_F(CudaCoexist, OurErrorsAreNotLeftPending) {
  const auto control =
      reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
  if (control == nullptr) GTEST_SKIP() << "no errors on demand on a real device";
  Random random(103);
  const Boxes boxes = test::boxSets()[0].make(100, random);
  const OnDevice<Aabb> there(boxes);
  DevicePairFinder finder;
  finder.find(there.view(), {}, cudaStreamPerThread);
  control("events_pending", 1);
  finder.find(there.view(), {}, cudaStreamPerThread);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "not ready is no error";
  control("fail_next_any", cudaErrorMemoryAllocation);
  EXPECT_THROW(finder.find(there.view(), {}, cudaStreamPerThread), std::runtime_error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(find(finder, there, cudaStreamPerThread), pairsOnHost(boxes));
}

TEST_F(CudaCoexist, FindersWorkOnTheirDeviceFromAnyThread) {
  if (devices_ < 2) GTEST_SKIP() << "one device";
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
  cudaSetDevice(1000);  // leaves an error, and so they work on a thread of their own
  EXPECT_EQ(find(other, onOne, streamOfOne), expected);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  current.reset();
  int device = -1;
  cudaCheck(cudaGetDevice(&device));
  EXPECT_EQ(device, 0) << "as it was";
}

TEST_F(CudaCoexist, PipelinesWorkOnTheirDevice) {
  if (devices_ < 2) GTEST_SKIP() << "one device";
  Random random(105);
  const std::vector<Boxes> scenes = {test::boxSets()[0].make(300, random)};
  for (const int device : {1, 0, 1}) elsewhere([&] { runPipeline(onDevice(device), scenes); });
  elsewhere([&] {
    cudaCheck(cudaSetDevice(1));
    const auto pipeline = makeCudaPipeline(onDevice(-1));
    StepStats stats;
    pipeline->step({view(scenes[0]), {}, {}, 1u << 20}, stats);
    EXPECT_EQ(deviceOf(pipeline->pairs().data), 1) << "the current one";
  });
}

// Whatever thread it is called from, all its calls come from its own.
TEST_F(CudaCoexist, APairFinderLeavesTheCallersThreadAlone) {
  Random random(106);
  const Boxes boxes = test::boxSets()[0].make(300, random);
  const Pairs expected = pairsOnHost(boxes);
  ASSERT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);  // and nobody asks
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
  EXPECT_EQ(device, 0) << "as it was";
}

TEST_F(CudaCoexist, APairFinderTakesTheCurrentDevice) {
  if (devices_ < 2) GTEST_SKIP() << "one device";
  cudaCheck(cudaSetDevice(1));
  PairFinder one(onDevice(-1));
  cudaCheck(cudaSetDevice(0));
  PairFinder zero(onDevice(-1));
  EXPECT_EQ(one.stats().backend, cudaDeviceName(1));
  EXPECT_EQ(zero.stats().backend, cudaDeviceName(0));
  EXPECT_THROW(PairFinder{onDevice(devices_)}, std::runtime_error);
}

TEST_F(CudaCoexist, SaysThatThereIsNoSuchDevice) {
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
