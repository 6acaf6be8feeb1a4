// SPDX-License-Identifier: Zlib
// Copies arrays to the current device and back, for tests.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/device_pair_finder.h"
#include "broadphase/pair_finder.h"
#include "support.h"

namespace lbvh::test {

template <class T>
std::vector<std::remove_const_t<T>> download(View<T> there) {
  std::vector<std::remove_const_t<T>> host(there.size());
  if (!there.empty())
    cudaCheck(
        cudaMemcpy(host.data(), there.data(), there.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

/// Returns when the copy is complete. cudaMemcpy may return earlier, and non-blocking streams would
/// not wait for its last bytes.
template <class T>
void toDevice(T* there, const T* host, std::size_t size) {
  if (size == 0) return;
  cudaCheck(cudaMemcpy(there, host, size * sizeof(T), cudaMemcpyHostToDevice));
  cudaCheck(cudaStreamSynchronize(cudaStreamLegacy));
}

template <class T>
class OnDevice {
 public:
  OnDevice() = default;
  explicit OnDevice(const std::vector<T>& host) { assign(host); }

  void assign(const std::vector<T>& host) {
    size_ = host.size();
    toDevice(buffer_.ensure(size_).data(), host.data(), size_);
  }
  View<const T> view() const { return {buffer_.data(), size_}; }

 private:
  DeviceBuffer<T> buffer_;
  std::size_t size_ = 0;
};

template <class T>
T* writable(const OnDevice<T>& there) {
  return const_cast<T*>(there.view().data());
}

/// Must be called after the stream has finished.
inline std::uint64_t countOf(const DeviceLists& found) {
  std::uint64_t count = 0;
  cudaCheck(cudaMemcpy(&count, &found.report->pairs, sizeof count, cudaMemcpyDeviceToHost));
  return count;
}
inline Pairs pairsOf(const DeviceLists& found) {
  return download(View<const Pair>{found.pairs.data(),
                                   std::min<std::size_t>(countOf(found), found.pairs.size())});
}

/// Reserves memory for searches of packed boxes.
inline void reserve(DevicePairFinder& finder, std::size_t boxes, std::size_t pairs) {
  alignas(Aabb) static constexpr Aabb nowhere{};  // no array is read
  finder.reserve(DeviceScene::of({&nowhere, boxes}), {}, pairs);
}

inline Pairs pairsOnHost(const Boxes& boxes, const std::vector<Filter>& filters = {}) {
  Options options;
  options.backend = Backend::host;
  options.threads = 1;
  PairFinder host(options);
  host.update(view(boxes), view(filters));
  return toVector(host.pairs());
}

}  // namespace lbvh::test
