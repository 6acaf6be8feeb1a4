// The pipeline on an NVIDIA GPU.
#include "broadphase/pipelines/cuda.cuh"

#include "broadphase/pipelines/cuda.h"

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

std::unique_ptr<Pipeline> makeCudaPipeline(bool timesStages) {
  return std::make_unique<CudaPipeline>(timesStages);
}

namespace {

class StreamPipeline final : public DevicePipeline {
 public:
  explicit StreamPipeline(std::size_t leastCapacity)
      : leastCapacity_(leastCapacity), pipeline_(false) {
    cudaCheck(cudaEventCreateWithFlags(&isOver_, cudaEventDisableTiming));
  }
  ~StreamPipeline() override {
    cudaEventSynchronize(isOver_);  // its memory is freed next
    cudaEventDestroy(isOver_);
  }

  DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                   CUstream_st* stream) override {
    if (wasAsked_ && isOver()) pipeline_.adaptToReport();
    wasAsked_ = false;  // if a call fails
    const DevicePairs pairs = pipeline_.find(boxes, filters, leastCapacity_, stream);
    cudaCheck(cudaEventRecord(isOver_, stream));
    wasAsked_ = true;
    return pairs;
  }

 private:
  bool isOver() const {
    const cudaError_t state = cudaEventQuery(isOver_);
    if (state == cudaErrorNotReady) cudaGetLastError();
    return state == cudaSuccess;
  }

  const std::size_t leastCapacity_;
  CudaPipeline pipeline_;
  cudaEvent_t isOver_ = nullptr;
  bool wasAsked_ = false;
};

}  // namespace

std::unique_ptr<DevicePipeline> makeDevicePipeline(std::size_t leastCapacity) {
  return std::make_unique<StreamPipeline>(leastCapacity);
}

}  // namespace lbvh
