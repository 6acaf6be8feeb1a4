// The pipelines on an NVIDIA GPU, for code that no CUDA compiler sees. Only in builds with CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "broadphase/pipelines/pipeline.h"
#include "broadphase/types.h"

struct CUstream_st;

namespace lbvh {

/// Stages 1 to 6 on the caller's stream, for DevicePairFinder.
class DevicePipeline {
 public:
  virtual ~DevicePipeline() = default;
  virtual DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                           CUstream_st* stream) = 0;
};

std::string whyNoCuda();       ///< empty if there is a device that can run our kernels
std::string cudaDeviceName();  ///< @throws SpaceError
std::unique_ptr<Pipeline> makeCudaPipeline(bool timesStages);  ///< @throws SpaceError
std::unique_ptr<DevicePipeline> makeDevicePipeline(std::size_t leastCapacity);  ///< likewise

}  // namespace lbvh
