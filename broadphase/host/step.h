// SPDX-License-Identifier: Zlib
// Makes the pipelines for the host's cores. step.cpp searches blocks of boxes, and tree_step.cpp
// searches a binary tree. worlds.cpp runs the searches and queries of DevicePairFinder.
#pragma once

#include <memory>

#include "broadphase/core/device_pipeline.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/options.h"

namespace lbvh {

/// @param threads at least 1
std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps = false);

/// @param threads at least 1
std::unique_ptr<Pipeline> makeHostTreePipeline(int threads, const SimdKernels& kernels);

/// @throws std::bad_alloc
std::unique_ptr<DevicePipeline> makeHostDevicePipeline(const DeviceOptions& options);

}  // namespace lbvh
