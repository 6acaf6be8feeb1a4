// SPDX-License-Identifier: Zlib
// The device's memory, for the checks that run on every space (device_scene_asking.h).
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "device_boxes.cuh"

namespace lbvh::test {

/// With a stream of its own, on which it waits only in wait().
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
  /// Writes over what was put.
  template <class T>
  void overwrite(T* there, const std::vector<std::remove_const_t<T>>& list) {
    cudaCheck(cudaMemcpy(const_cast<std::remove_const_t<T>*>(there), list.data(),
                         list.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  void clear() { lists_.clear(); }
  cudaStream_t stream() const { return stream_; }
  void wait() const { cudaCheck(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<std::shared_ptr<void>> lists_;
};

}  // namespace lbvh::test
