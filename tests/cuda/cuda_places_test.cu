// SPDX-License-Identifier: Zlib
// Tests which memory the arrays of a DevicePairFinder may be in. Skipped if there is no device.
#include <dlfcn.h>
#include <stdlib.h>

#include "broadphase/cuda/runtime/array_places.cuh"
#include "cuda_fixture.h"

namespace lbvh {
namespace {

// Must run before the first CUDA call.
[[maybe_unused]] const int kInterpreter = setenv("PTXVM_DEVICES", "2", 0);

/// Changes what the interpreter reports about its devices.
/// @return false on a real device
bool control(const char* name, long value) {
  const auto function =
      reinterpret_cast<int (*)(const char*, long)>(dlsym(RTLD_DEFAULT, "ptxvm_control"));
  return function != nullptr && function(name, value) == 0;
}

/// The message with which device 0 refuses an array; empty if it accepts the array.
std::string refusalOf(const void* array, bool validates = true) {
  try {
    ArrayPlaces(0, validates).require(array);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

void expectRefused(const void* array, const std::string& why) {
  const std::string message = refusalOf(array);
  EXPECT_NE(message.find(why), std::string::npos) << message;
  EXPECT_EQ(refusalOf(array, false), "") << "places are not validated";
}

class CudaPlaces : public test::OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    cudaCheck(cudaMallocHost(&locked_, kBytes));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    control("reads_pageable", 0);
    control("host_offset", 0);
    cudaFreeHost(locked_);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  static constexpr std::size_t kBytes = 256;
  void* locked_ = nullptr;
  const int ordinary_ = 0;
};

TEST_F(CudaPlaces, AcceptsMemoryThatKernelsRead) {
  void *device = nullptr, *managed = nullptr;
  cudaCheck(cudaMalloc(&device, kBytes));
  cudaCheck(cudaMallocManaged(&managed, kBytes));
  for (void* const memory : {device, managed, locked_}) {
    EXPECT_EQ(refusalOf(memory), "");
    EXPECT_EQ(refusalOf(static_cast<char*>(memory) + kBytes / 2), "");
  }
  EXPECT_EQ(refusalOf(nullptr), "");
  cudaFree(device);
  cudaFree(managed);
}

TEST_F(CudaPlaces, OrdinaryMemoryIsRefusedUnlessKernelsReadIt) {
  if (!control("reads_pageable", 0)) GTEST_SKIP() << "a real device cannot change this";
  expectRefused(&ordinary_, "in ordinary host memory, not on device 0");
  control("reads_pageable", 1);
  EXPECT_EQ(refusalOf(&ordinary_), "");
}

TEST_F(CudaPlaces, MemoryOfAnotherDeviceIsRefused) {
  int devices = 0;
  cudaCheck(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "there is only one device";
  void* other = nullptr;
  cudaCheck(cudaSetDevice(1));
  cudaCheck(cudaMalloc(&other, kBytes));
  cudaCheck(cudaSetDevice(0));
  for (const long readsPageable : {0, 1}) {
    control("reads_pageable", readsPageable);
    expectRefused(other, "on device 1, not on device 0");
  }
  cudaFree(other);
}

TEST_F(CudaPlaces, LockedMemoryIsRefusedIfItsPointerDiffersOnTheDevice) {
  if (!control("host_offset", 4096)) GTEST_SKIP() << "a real device cannot change this";
  for (const long readsPageable : {0, 1}) {
    control("reads_pageable", readsPageable);
    control("host_offset", 4096);
    expectRefused(locked_, "pass that of device 0, from cudaHostGetDevicePointer");
    control("host_offset", -1);
    expectRefused(locked_, "not mapped for device 0");
  }
}

}  // namespace
}  // namespace lbvh
