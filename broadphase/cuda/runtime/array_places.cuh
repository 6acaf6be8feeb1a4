// SPDX-License-Identifier: Zlib
// Whether arrays that a caller hands in can be had by kernels on a device.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "broadphase/cuda/runtime/check.cuh"
#include "broadphase/device_scene.h"

namespace lbvh {

class ArrayPlaces {
 public:
  explicit ArrayPlaces(int device) : device_(device) {
    int does = 0;
    cudaDeviceGetAttribute(&does, cudaDevAttrPageableMemoryAccess, device);
    readsAll_ = does != 0;
  }

  /// @throws std::invalid_argument if an array is not null and not for this device
  template <class... T>
  void require(const T*... arrays) const {
    (requireOne(arrays), ...);
  }

  void require(const DeviceScene& scene, const DeviceRequest& request) const {
    require(scene.count, scene.lower.data, scene.upper.data, scene.margins,
            scene.displacements.data, scene.filters, scene.bodies, scene.movable, scene.worlds,
            scene.excluded.data);
    require(request.pairs.data, request.neighbours.data, request.offsets.data, request.added.data,
            request.removed.data, request.byWorld.data);
  }

 private:
  void requireOne(const void* array) const {
    if (array == nullptr || readsAll_) return;
    cudaPointerAttributes attributes{};
    cudaCheck(cudaPointerGetAttributes(&attributes, array));
    if (attributes.type == cudaMemoryTypeUnregistered)
      throw std::invalid_argument("DevicePairFinder: an array is in ordinary memory of the host");
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != device_)
      throw std::invalid_argument("DevicePairFinder: an array is on device " +
                                  std::to_string(attributes.device) + ", not " +
                                  std::to_string(device_));
  }

  int device_;
  bool readsAll_ = false;  ///< ordinary memory of the host, too
};

}  // namespace lbvh
