// SPDX-License-Identifier: Zlib
// Makes the pipelines for NVIDIA GPUs, and finds out whether a device can run them.
#include "broadphase/cuda/step.cuh"

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

#include <mutex>

#include "broadphase/cuda/scene.cuh"
#include "broadphase/cuda/step.h"

namespace lbvh {

namespace {

/// A scope in which CUDA calls may fail. The destructor clears their error, unless an error was
/// pending before.
struct MayFail {
  const bool wasClean = cudaPeekAtLastError() == cudaSuccess;
  ~MayFail() {
    if (wasClean) cudaGetLastError();
  }
};

#if defined(GPULBVH_SHARED_CUDART) || defined(_WIN32)
bool mayHaveDriver() { return true; }  // cudart may be an interpreter, which needs no driver
#else
bool mayHaveDriver() { return dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != nullptr; }
#endif

struct Obstacle {
  std::string why;  ///< empty: there is no obstacle
  bool isForGood = false;
};

/// An obstacle that affects all devices as long as the process runs.
struct Known {
  std::mutex mutex;
  std::string why;
};
Known known;

Obstacle noDevices(const char* what) {
  const std::lock_guard<std::mutex> lock(known.mutex);
  known.why = std::string("no cuda: ") + what;
  return {known.why, true};
}

/// Finds out whether the device can run our kernels. If so, makes it this thread's current device.
Obstacle obstacleTo(int device) {
  const MayFail mayFail;
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted == cudaErrorNoDevice || counted == cudaErrorInsufficientDriver)
    return noDevices(cudaGetErrorString(counted));
  if (counted != cudaSuccess) return {std::string("no cuda: ") + cudaGetErrorString(counted)};
  if (devices == 0) return noDevices("no device");
  if (device < 0 || device >= devices)
    return {"no cuda: no device " + std::to_string(device) + ", there " +
                (devices == 1 ? "is only device 0" : "are 0 to " + std::to_string(devices - 1)),
            true};
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) {
    const RelaxedCapture relaxed;
    cudaFuncAttributes attributes{};
    error = cudaFuncGetAttributes(&attributes, measureKernel);
  }
  if (error == cudaSuccess) return {};
  const bool isForeign =
      error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion;
  return {std::string(isForeign ? "no cuda: no code for this device: " : "no cuda: ") +
              cudaGetErrorString(error),
          error == cudaErrorNoKernelImageForDevice};
}

/// A scope: the destructor restores the calling thread's current device.
class KeptDevice {
 public:
  KeptDevice() = default;
  ~KeptDevice() {
    const MayFail mayFail;
    if (currentCudaDevice() != before_) cudaSetDevice(before_);
  }
  KeptDevice(const KeptDevice&) = delete;
  KeptDevice& operator=(const KeptDevice&) = delete;

 private:
  const int before_ = currentCudaDevice();
};

/// @throws SpaceError if the device cannot run our kernels
int deviceOf(int requested) {
  const int device = requested < 0 ? currentCudaDevice() : requested;
  const Obstacle obstacle = obstacleTo(device);
  if (!obstacle.why.empty()) throw SpaceError(obstacle.why, obstacle.isForGood);
  return device;
}

}  // namespace

int currentCudaDevice() {
  int device = 0;
  const MayFail mayFail;
  return mayHaveDriver() && cudaGetDevice(&device) == cudaSuccess ? device : 0;
}

std::string whyNoCuda(int device) { return obstacleTo(device).why; }

std::string knownWhyNoCuda() {
  const std::lock_guard<std::mutex> lock(known.mutex);
  return known.why;
}

std::string cudaDeviceName(int device) {
  cudaDeviceProp properties{};
  cudaCheck(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::unique_ptr<Pipeline> makeCudaPipeline(const Options& options) {
  Options known = options;
  known.device = deviceOf(options.device);
  const RelaxedCapture relaxed;
  return std::make_unique<CudaPipeline>(known);
}

std::unique_ptr<DevicePipeline> makeCudaDevicePipeline(const DeviceOptions& options) {
  const KeptDevice kept;
  return std::make_unique<CudaDevicePipeline>(deviceOf(options.device), options);
}

}  // namespace lbvh
