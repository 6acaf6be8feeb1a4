// Buffers on the device, in pinned memory, and a copy of a host array in both.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "broadphase/exec/buffer.h"
#include "broadphase/exec/cuda/check.cuh"
#include "broadphase/exec/cuda/memory.cuh"
#include "broadphase/types.h"

namespace lbvh {

template <class T>
using DeviceBuffer = GrowBuffer<T, DeviceMemory>;
template <class T>
using PinnedBuffer = GrowBuffer<T, PinnedMemory>;

/// A copy of a host array on the device, padded so that its size seldom changes. Only blocks that
/// differ from the last upload are copied.
template <class T>
class UploadBuffer {
 public:
  explicit UploadBuffer(DeviceMemory device = {}, PinnedMemory pinned = {})
      : device_(device), shadow_(pinned) {}

  View<const T> upload(View<const T> host, cudaStream_t stream) {
    if (host.empty()) return {};
    const std::size_t padded = paddedSize(host.size);
    if (padded > device_.capacity() || padded > shadow_.capacity()) known_ = 0;
    const View<T> device = device_.ensure(padded);
    T* shadow = shadow_.ensure(padded).data;
    const std::size_t known = std::exchange(known_, 0);  // none, if a copy fails
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
    if (padded > host.size && (known != host.size || padded != padded_))
      cudaCheck(cudaMemsetAsync(device.data + host.size, kPadding, (padded - host.size) * sizeof(T),
                                stream));
    known_ = host.size;
    padded_ = padded;
    return device;
  }

  void invalidate() { known_ = 0; }

 private:
  static constexpr std::size_t kBlock = 65536 / sizeof(T);  // large enough to be worth a copy
  static constexpr int kPadding = std::is_same_v<T, Aabb> ? 0xFF : 0;  // a box of NaNs, or zeros

  /// At most a sixteenth more, or 255.
  static std::size_t paddedSize(std::size_t n) {
    const std::size_t step = std::max<std::size_t>(256, std::bit_floor(n) / 16);
    return (n + step - 1) / step * step;
  }
  static std::size_t blockEnd(std::size_t at, std::size_t size) {
    return at + kBlock < size ? at + kBlock : size;
  }
  static bool differs(View<const T> host, const T* shadow, std::size_t at, std::size_t known) {
    const std::size_t end = blockEnd(at, host.size);
    return end > known || std::memcmp(shadow + at, host.data + at, (end - at) * sizeof(T)) != 0;
  }

  DeviceBuffer<T> device_;
  PinnedBuffer<T> shadow_;
  std::size_t known_ = 0;   ///< how much of the shadow is on the device
  std::size_t padded_ = 0;  ///< how far the padding behind it goes
};

}  // namespace lbvh
