// SPDX-License-Identifier: Zlib
// Defines the interface between DevicePairFinder and the spaces. cuda/scene.cuh implements it for
// CUDA, and host/worlds.cpp for the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"
#include "broadphase/types.h"

struct CUstream_st;

namespace lbvh {

/// Implements a DevicePairFinder on the host or on a GPU. The caller has checked the arguments, but
/// not in which memory the arrays are.
class DevicePipeline {
 public:
  virtual ~DevicePipeline() = default;

  virtual DeviceLists find(const DeviceScene& scene, const DeviceRequest& request,
                           CUstream_st* stream) = 0;
  virtual void reserve(const DeviceScene& scene, const DeviceRequest& request,
                       std::size_t pairs) = 0;

  virtual void closestHits(const RayBatch& rays, RayHit* hits, CUstream_st* stream) = 0;
  virtual void anyHits(const RayBatch& rays, std::uint8_t* hits, CUstream_st* stream) = 0;
  virtual DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> list,
                             CUstream_st* stream) = 0;
  virtual DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> list,
                             CUstream_st* stream) = 0;
  virtual void reserveQueries(std::size_t queries, std::size_t hits) = 0;
};

}  // namespace lbvh
