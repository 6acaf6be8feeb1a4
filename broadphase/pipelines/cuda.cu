// The pipelines on an NVIDIA GPU, and what there is to know of its devices.
#include "broadphase/pipelines/cuda.cuh"

#include <dlfcn.h>

#include "broadphase/pipelines/cuda.h"
#include "broadphase/pipelines/cuda_device.cuh"

namespace lbvh {

namespace {

/// While it lives, a call may fail: what it leaves pending is cleared, if nothing was before.
struct MayFail {
  const bool wasClean = cudaPeekAtLastError() == cudaSuccess;
  ~MayFail() {
    if (wasClean) cudaGetLastError();
  }
};

#if defined(GPULBVH_SHARED_CUDART)
bool mayHaveDriver() { return true; }  // an interpreter in cudart's place has none
#else
bool mayHaveDriver() { return dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != nullptr; }
#endif

/// @throws SpaceError if it cannot run our kernels
int deviceOf(const Options& options) {
  const int device = options.device < 0 ? currentCudaDevice() : options.device;
  const std::string why = whyNoCuda(device);
  if (!why.empty()) throw SpaceError(why, false);
  return device;
}

std::string whyNoCode(int device) {
  try {
    const CurrentDevice current(device);
    cudaFuncAttributes attributes{};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, forEachKernel<ChooseGrid>);
    if (error == cudaSuccess) return {};
    return std::string("no cuda: no code for this device: ") + cudaGetErrorString(error);
  } catch (const SpaceError& error) {
    return std::string("no cuda: ") + error.what();
  }
}

}  // namespace

int currentCudaDevice() {
  int device = 0;
  const MayFail mayFail;
  return mayHaveDriver() && cudaGetDevice(&device) == cudaSuccess ? device : 0;
}

std::string whyNoCuda(int device) {
  const MayFail mayFail;
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) return std::string("no cuda: ") + cudaGetErrorString(error);
  if (devices == 0) return "no cuda: no device";
  if (device < 0 || device >= devices)
    return "no cuda: no device " + std::to_string(device) + ", there " +
           (devices == 1 ? "is only device 0" : "are 0 to " + std::to_string(devices - 1));
  const RelaxedCapture relaxed;
  return whyNoCode(device);
}

std::string cudaDeviceName(int device) {
  cudaDeviceProp properties{};
  cudaCheck(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::unique_ptr<Pipeline> makeCudaPipeline(const Options& options) {
  Options known = options;
  known.device = deviceOf(options);
  const RelaxedCapture relaxed;
  return std::make_unique<CudaPipeline>(known);
}

std::unique_ptr<DevicePipeline> makeDevicePipeline(std::size_t leastCapacity,
                                                   const Options& options) {
  const int device = deviceOf(options);
  return std::make_unique<StreamPipeline>(device, leastCapacity, options.maxPairs);
}

}  // namespace lbvh
