// SPDX-License-Identifier: Zlib
// Checks whether kernels on a device can read a caller's arrays.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

class ArrayPlaces {
 public:
  /// @param validates false: every array is accepted without a CUDA call
  ArrayPlaces(int device, bool validates) : device_(device), validates_(validates) {
    int does = 0;
    if (validates) cudaDeviceGetAttribute(&does, cudaDevAttrPageableMemoryAccess, device);
    readsPageable_ = does != 0;
  }

  /// The device must be the current one.
  /// @throws std::invalid_argument if an array is not null and cannot be read on this device
  template <class... T>
  void require(const T*... arrays) const {
    (requireOne(arrays), ...);
  }

 private:
  void requireOne(const void* array) const {
    if (array == nullptr || !validates_) return;
    cudaPointerAttributes attributes{};
    cudaCheck(cudaPointerGetAttributes(&attributes, array));
    if (attributes.type == cudaMemoryTypeUnregistered && !readsPageable_)
      refuse("in ordinary host memory, not on " + here());
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != device_)
      refuse("on device " + std::to_string(attributes.device) + ", not on " + here());
    // Kernels get the caller's pointer, so it must be valid on the device, too.
    if (attributes.type == cudaMemoryTypeHost && attributes.devicePointer != array)
      refuse(attributes.devicePointer == nullptr
                 ? "in page-locked host memory that is not mapped for " + here()
                 : "in page-locked host memory, at the host's pointer: pass that of " + here() +
                       ", from cudaHostGetDevicePointer");
  }

  std::string here() const { return "device " + std::to_string(device_); }

  [[noreturn]] static void refuse(const std::string& where) {
    throw std::invalid_argument("DevicePairFinder: an array is " + where);
  }

  int device_;
  bool validates_;
  bool readsPageable_ = false;  ///< whether kernels can read ordinary host memory
};

}  // namespace lbvh
