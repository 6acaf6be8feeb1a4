// SPDX-License-Identifier: Zlib
// DevicePairFinder's calls on the host's cores.
#pragma once

#include <memory>

#include "broadphase/options.h"
#include "broadphase/pipelines/device.h"

namespace lbvh {

/// @throws std::bad_alloc
std::unique_ptr<DevicePipeline> makeHostDevicePipeline(const DeviceOptions& options);

}  // namespace lbvh
