// SPDX-License-Identifier: Zlib
// Arrays in device memory, for the checks that run on both host and GPU (device_scene_asking.h).
#pragma once

#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "broadphase/cuda/runtime/graphs.cuh"
#include "broadphase/device_pair_finder.h"
#include "cuda_fixture.h"
#include "device_boxes.cuh"

namespace lbvh::test {

/// A `Space` in device memory. Has its own stream, and waits for it only in wait().
class DeviceArrays {
 public:
  static constexpr bool kNeverCuts = false;

  DeviceArrays() { cudaCheck(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~DeviceArrays() { cudaStreamDestroy(stream_); }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  template <class T>
  T* put(const std::vector<T>& list) {
    if (list.empty()) return nullptr;
    const auto kept = std::make_shared<OnDevice<T>>(list);
    lists_.push_back(kept);
    return writable(*kept);
  }
  template <class T>
  std::vector<std::remove_const_t<T>> get(T* there, std::size_t size) const {
    return download(View<T>{there, size});
  }
  /// Overwrites an array that put() made.
  template <class T>
  void overwrite(T* there, const std::vector<std::remove_const_t<T>>& list) {
    toDevice(const_cast<std::remove_const_t<T>*>(there), list.data(), list.size());
  }
  void clear() { lists_.clear(); }
  cudaStream_t stream() const { return stream_; }
  void wait() const { cudaCheck(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<std::shared_ptr<void>> lists_;
};

inline GraphExec endCapture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaCheck(cudaStreamEndCapture(stream, &graph));
  cudaCheck(cudaGraphInstantiate(&exec, graph, 0));
  cudaGraphDestroy(graph);
  return GraphExec(exec);
}

/// An allocator that counts its allocations and remembers their sizes.
struct Accountant {
  std::map<void*, std::size_t> out;
  std::size_t handedOut = 0, wrong = 0, bytes = 0;
  std::size_t most = ~std::size_t{0};  ///< maximum of `handedOut`; further allocations fail

  DeviceAllocator allocator() {
    return {[](std::size_t bytes, CUstream_st*, void* user) {
              return static_cast<Accountant*>(user)->allocate(bytes);
            },
            [](void* memory, std::size_t bytes, CUstream_st* stream, void* user) {
              // Work may still use the memory, and cudaFree does not always wait for it.
              cudaStreamSynchronize(stream);
              static_cast<Accountant*>(user)->release(memory, bytes);
            },
            this};
  }

  void* allocate(std::size_t size) {
    void* memory = nullptr;
    if (handedOut == most) return nullptr;
    if (cudaMalloc(&memory, size) != cudaSuccess) return nullptr;
    out[memory] = size;
    bytes += size;
    ++handedOut;
    return memory;
  }
  void release(void* memory, std::size_t size) {
    const auto found = out.find(memory);
    if (found == out.end() || found->second != size) ++wrong;
    if (found != out.end()) bytes -= found->second, out.erase(found);
    cudaFree(memory);
  }
};

/// The fixture of tests with arrays on the device. A test must leave no CUDA error pending.
class WithDeviceArrays : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (!IsSkipped()) memory_ = std::make_unique<DeviceArrays>();
  }
  void TearDown() override {
    if (memory_ == nullptr) return;
    memory_.reset();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  std::unique_ptr<DeviceArrays> memory_;
};

}  // namespace lbvh::test
