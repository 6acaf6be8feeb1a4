// Grow-only, uninitialised, move-only memory on the device, and pinned on the host. As HostBuffer.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "broadphase/exec/cuda_check.cuh"
#include "broadphase/types.h"

namespace lbvh {

struct DeviceMemory {
  static void* allocate(std::size_t bytes) {
    void* p = nullptr;
    cudaCheck(cudaMalloc(&p, bytes));
    return p;
  }
  static void release(void* p) { cudaFree(p); }
};

/// Page-locked, and mapped: kernels may write it.
struct PinnedMemory {
  static void* allocate(std::size_t bytes) {
    void* p = nullptr;
    cudaCheck(cudaHostAlloc(&p, bytes, cudaHostAllocMapped));
    return p;
  }
  static void release(void* p) { cudaFreeHost(p); }
};

template <class T, class Memory>
class CudaBuffer {
 public:
  CudaBuffer() = default;
  ~CudaBuffer() { reset(); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  /// Room for n elements, contents undefined. Growth adds an eighth.
  View<T> ensure(std::size_t n) {
    if (n > capacity_) {
      const std::size_t grown = n + n / 8 + 16;
      reset();
      data_ = static_cast<T*>(Memory::allocate(grown * sizeof(T)));
      capacity_ = grown;
    }
    return {data_, n};
  }

  T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  void reset() {
    if (data_ != nullptr) Memory::release(data_);
    data_ = nullptr;
    capacity_ = 0;
  }

  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

template <class T>
using DeviceBuffer = CudaBuffer<T, DeviceMemory>;
template <class T>
using PinnedBuffer = CudaBuffer<T, PinnedMemory>;

/// A host array's twin on the device. Only blocks that differ from the last upload travel.
template <class T>
class UploadBuffer {
 public:
  View<const T> upload(View<const T> host, cudaStream_t stream) {
    if (host.empty()) return {};
    if (host.size > device_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(host.size);
    if (host.size > shadow_.capacity()) known_ = 0;
    T* shadow = shadow_.ensure(host.size).data;
    const std::size_t known = std::exchange(known_, 0);  // nothing, should a copy fail
    for (std::size_t begin = 0; begin < host.size;) {
      std::size_t end = begin;
      while (end < host.size && differs(host, shadow, end, known)) end = blockEnd(end, host.size);
      if (end > begin) {
        std::memcpy(shadow + begin, host.data + begin, (end - begin) * sizeof(T));
        cudaCheck(cudaMemcpyAsync(device.data + begin, shadow + begin, (end - begin) * sizeof(T),
                                  cudaMemcpyHostToDevice, stream));
      }
      begin = end < host.size ? blockEnd(end, host.size) : end;
    }
    known_ = host.size;
    return device;
  }

  void forget() { known_ = 0; }
  std::size_t bytes() const { return device_.bytes(); }

 private:
  static constexpr std::size_t kBlock = 65536 / sizeof(T);  // large enough to be worth a copy

  static std::size_t blockEnd(std::size_t at, std::size_t size) {
    return at + kBlock < size ? at + kBlock : size;
  }
  static bool differs(View<const T> host, const T* shadow, std::size_t at, std::size_t known) {
    const std::size_t end = blockEnd(at, host.size);
    return end > known || std::memcmp(shadow + at, host.data + at, (end - at) * sizeof(T)) != 0;
  }

  DeviceBuffer<T> device_;
  PinnedBuffer<T> shadow_;
  std::size_t known_ = 0;  ///< how much of the shadow is on the device
};

}  // namespace lbvh
