// The pipeline on an NVIDIA GPU.
#include "broadphase/exec/cuda_space.cuh"
#include "broadphase/pipeline.h"

namespace lbvh {

std::string whyNoCuda() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    cudaGetLastError();
    return std::string("no cuda: ") +
           (error != cudaSuccess ? cudaGetErrorString(error) : "no device");
  }
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, forEachKernel<ChooseGrid>) != cudaSuccess)
    return std::string("no cuda: no code for this device: ") +
           cudaGetErrorString(cudaGetLastError());
  return {};
}

std::string cudaDeviceName() {
  cudaDeviceProp properties{};
  int device = 0;
  cudaCheck(cudaGetDevice(&device));
  cudaCheck(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::unique_ptr<AnyPipeline> makeCudaPipeline() { return std::make_unique<Pipeline<CudaSpace>>(); }

}  // namespace lbvh
