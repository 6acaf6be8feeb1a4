// SPDX-License-Identifier: Zlib
// Declares the pipelines on an NVIDIA GPU, for code that is compiled without a CUDA compiler. Only
// builds with CUDA have them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "broadphase/core/device_pipeline.h"
#include "broadphase/core/pipeline.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

/// The current device of the calling thread. If the program has never used CUDA, this is 0, and the
/// driver is not started.
int currentCudaDevice();

/// Empty if the device can run our kernels, else the reason. The call leaves no new error pending,
/// but makes the device the thread's current one. So this function should be called on a separate
/// thread.
std::string whyNoCuda(int device = 0);

/// The last result of whyNoCuda() that holds for the whole process: no driver, or no device. Makes
/// no CUDA call.
std::string knownWhyNoCuda();

std::string cudaDeviceName(int device = 0);  ///< @throws SpaceError

/// Works on `options.device` or, if that is -1, on the calling thread's current device. The
/// pipeline must be created, used and destroyed on one thread, preferably a dedicated one. It makes
/// the device the thread's current one, and clears the thread's last error.
/// @throws SpaceError
std::unique_ptr<Pipeline> makeCudaPipeline(const Options& options);

/// Works on the callers' streams, from any thread.
/// @throws std::runtime_error
std::unique_ptr<DevicePipeline> makeCudaDevicePipeline(const DeviceOptions& options);

}  // namespace lbvh
