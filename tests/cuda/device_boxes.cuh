// SPDX-License-Identifier: Zlib
// What tests put on the current device, and what comes back.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "broadphase/cuda/runtime/buffer.cuh"
#include "broadphase/pair_finder.h"
#include "support.h"

namespace lbvh::test {

template <class T>
std::vector<std::remove_const_t<T>> download(View<T> there) {
  std::vector<std::remove_const_t<T>> host(there.size);
  if (!there.empty())
    cudaCheck(cudaMemcpy(host.data(), there.data, there.size * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

/// Is over when it returns: cudaMemcpy may return before its last bytes are there, and streams that
/// do not block would not wait for them.
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
    toDevice(buffer_.ensure(size_).data, host.data(), size_);
  }
  View<const T> view() const { return {buffer_.data(), size_}; }

 private:
  DeviceBuffer<T> buffer_;
  std::size_t size_ = 0;
};

template <class T>
T* writable(const OnDevice<T>& there) {
  return const_cast<T*>(there.view().data);
}

/// When the stream has come to its end.
inline std::uint64_t countOf(const DevicePairs& found) {
  std::uint64_t count = 0;
  cudaCheck(cudaMemcpy(&count, found.count, sizeof count, cudaMemcpyDeviceToHost));
  return count;
}
inline Pairs pairsOf(const DevicePairs& found) {
  return download(
      View<const Pair>{found.data, std::min<std::size_t>(countOf(found), found.capacity)});
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
