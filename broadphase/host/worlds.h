// SPDX-License-Identifier: Zlib
// DevicePairFinder's calls on the host's cores.
#pragma once

#include <memory>

#include "broadphase/core/device_pipeline.h"
#include "broadphase/options.h"

namespace lbvh {

/// @throws std::bad_alloc
std::unique_ptr<DevicePipeline> makeHostDevicePipeline(const DeviceOptions& options);

}  // namespace lbvh
