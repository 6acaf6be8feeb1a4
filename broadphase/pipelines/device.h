// SPDX-License-Identifier: Zlib
// What DevicePairFinder asks of a space. CUDA's is cuda_device.cuh; the host's is in
// device_pair_finder.cpp.
#pragma once

#include <cstddef>

#include "broadphase/types.h"

struct CUstream_st;

namespace lbvh {

/// All stages up to the sorted pairs, in the space's memory.
class DevicePipeline {
 public:
  virtual ~DevicePipeline() = default;
  virtual DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                           CUstream_st* stream) = 0;
  virtual void reserve(std::size_t boxes, std::size_t pairs) = 0;
};

}  // namespace lbvh
