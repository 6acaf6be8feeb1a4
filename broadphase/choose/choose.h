// SPDX-License-Identifier: Zlib
// From options to the pipeline that does what they ask for.
#pragma once

#include <memory>

#include "broadphase/core/pipeline.h"
#include "broadphase/options.h"

namespace lbvh {

/// @param stats receives where steps run first and why, and what the host's loops use
/// @throws std::runtime_error if the GPU was asked for and cannot be used
std::unique_ptr<Pipeline> choosePipeline(const Options& options, Stats& stats);

}  // namespace lbvh
