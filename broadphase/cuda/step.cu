// SPDX-License-Identifier: Zlib
// The pipelines on an NVIDIA GPU, and what there is to know of its devices.
#include "broadphase/cuda/step.cuh"

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

#include <mutex>

#include "broadphase/cuda/scene.cuh"
#include "broadphase/cuda/step.h"

namespace lbvh {

namespace {

/// While it lives, a call may fail: what it leaves pending is cleared, if nothing was before.
struct MayFail {
  const bool wasClean = cudaPeekAtLastError() == cudaSuccess;
  ~MayFail() {
    if (wasClean) cudaGetLastError();
  }
};

#if defined(GPULBVH_SHARED_CUDART) || defined(_WIN32)
bool mayHaveDriver() { return true; }  // an interpreter in cudart's place has none
#else
bool mayHaveDriver() { return dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != nullptr; }
#endif

struct Obstacle {
  std::string why;  ///< empty: none
  bool isForGood = false;
};

/// What is so of all devices, and stays so.
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
  try {
    const RelaxedCapture relaxed;
    const CurrentDevice current(device);
    cudaFuncAttributes attributes{};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, measureKernel);
    if (error == cudaSuccess) return {};
    return {std::string("no cuda: no code for this device: ") + cudaGetErrorString(error),
            error == cudaErrorNoKernelImageForDevice};
  } catch (const SpaceError& error) {
    return {std::string("no cuda: ") + error.what()};
  }
}

/// @throws SpaceError if it cannot run our kernels
int deviceOf(int asked) {
  const int device = asked < 0 ? currentCudaDevice() : asked;
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
  return std::make_unique<StreamPipeline>(deviceOf(options.device), options);
}

}  // namespace lbvh
