// SPDX-License-Identifier: Zlib
// The pipelines on an NVIDIA GPU, for code that no CUDA compiler sees. Only in builds with CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "broadphase/core/device_pipeline.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

/// The calling thread's. A program that has never used CUDA has device 0, and its driver is not
/// started to ask.
int currentCudaDevice();

/// Empty if the device can run our kernels. Leaves no error pending that was not.
std::string whyNoCuda(int device = 0);

/// What whyNoCuda() has said, if it holds for this process: no driver, or no device. Asks nothing.
std::string knownWhyNoCuda();

std::string cudaDeviceName(int device = 0);  ///< @throws SpaceError

/// Works on `options.device`, or if that is -1 on the calling thread's current one. To be made,
/// used and destroyed on one thread, and best on one of its own: it makes that device the thread's
/// current one, and clears the thread's last error.
/// @throws SpaceError
std::unique_ptr<Pipeline> makeCudaPipeline(const Options& options);

/// On the callers' streams, from any thread.
/// @throws std::runtime_error
std::unique_ptr<DevicePipeline> makeCudaDevicePipeline(const DeviceOptions& options);

}  // namespace lbvh
