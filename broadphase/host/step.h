// SPDX-License-Identifier: Zlib
// The pipeline on the host's cores.
#pragma once

#include <memory>

#include "broadphase/core/pipeline.h"
#include "broadphase/host/simd/kernels.h"

namespace lbvh {

/// @param threads at least 1
std::unique_ptr<Pipeline> makeHostPipeline(int threads, const SimdKernels& kernels,
                                           bool timesSmallSteps = false);

}  // namespace lbvh
