// SPDX-License-Identifier: Zlib
// Makes the pipeline that the options request.
#pragma once

#include <memory>

#include "broadphase/core/pipeline.h"
#include "broadphase/options.h"

namespace lbvh {

/// @param stats receives where the first steps run and why, the number of host threads, and the
///   host's instruction set
/// @throws std::runtime_error if the options request the GPU and it cannot be used
std::unique_ptr<Pipeline> choosePipeline(const Options& options, Stats& stats);

}  // namespace lbvh
