// SPDX-License-Identifier: Zlib
// Checks whether kernels on a device can read the arrays of a caller.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

class ArrayPlaces {
 public:
  /// @param validates false: every array is accepted without a CUDA call
  ArrayPlaces(int device, bool validates) : device_(device), readsAll_(!validates) {
    if (!validates) return;
    int does = 0;
    cudaDeviceGetAttribute(&does, cudaDevAttrPageableMemoryAccess, device);
    readsAll_ = does != 0;
  }

  /// @throws std::invalid_argument if an array is not null and cannot be read on this device
  template <class... T>
  void require(const T*... arrays) const {
    (requireOne(arrays), ...);
  }

 private:
  void requireOne(const void* array) const {
    if (array == nullptr || readsAll_) return;
    cudaPointerAttributes attributes{};
    cudaCheck(cudaPointerGetAttributes(&attributes, array));
    if (attributes.type == cudaMemoryTypeUnregistered)
      throw std::invalid_argument(
          "DevicePairFinder: an array is in ordinary host memory, not on device " +
          std::to_string(device_));
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != device_)
      throw std::invalid_argument("DevicePairFinder: an array is on device " +
                                  std::to_string(attributes.device) + ", not on device " +
                                  std::to_string(device_));
  }

  int device_;
  bool readsAll_ = false;  ///< also accepts ordinary host memory
};

}  // namespace lbvh
