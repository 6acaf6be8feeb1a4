// SPDX-License-Identifier: Zlib
#include "broadphase/cuda/runtime/graphs.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/cuda/step.h"
#include "worlds/space.h"

namespace worlds {
namespace {

/// While this object exists, the stream records its work instead of running it.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    cudaCheck(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t graph = nullptr;  // graph of an unfinished recording; only destroyed
    if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  lbvh::GraphExec finish() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaCheck(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph));
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaCheck(error);
    return lbvh::GraphExec(exec);
  }

 private:
  cudaStream_t stream_;
};

class CudaSpace final : public Space {
 public:
  CudaSpace() { cudaCheck(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaSpace() override {
    cudaStreamSynchronize(stream_);
    for (void* memory : memory_) cudaFree(memory);
    cudaStreamDestroy(stream_);
  }
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;

  std::string name() const override { return lbvh::cudaDeviceName(); }
  CUstream_st* stream() override { return stream_; }

  void* allocate(std::size_t bytes) override {
    memory_.push_back(nullptr);
    cudaCheck(cudaMalloc(&memory_.back(), bytes));
    return memory_.back();
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    cudaCheck(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
  }

  void forEach(std::size_t n, const WriteBox& f) override { launch(n, f); }
  void forEach(std::size_t n, const MoveBody& f) override { launch(n, f); }

  /// Does not record the first step, because CUDA loads a kernel at its first launch.
  void repeat(const std::function<void()>& step) override {
    if (!isWarm_) {
      step();
      isWarm_ = true;
      return;
    }
    if (!graph_) {
      Capture capture(stream_);
      step();
      graph_ = capture.finish();
    }
    cudaCheck(cudaGraphLaunch(graph_.get(), stream_));
  }
  void forget() override { graph_.reset(); }

 private:
  template <class F>
  void launch(std::size_t n, const F& f) {
    const auto count = static_cast<std::uint32_t>(n);
    const unsigned blocks = (count + lbvh::kThreads - 1) / lbvh::kThreads;
    lbvh::forEachKernel<<<blocks, lbvh::kThreads, 0, stream_>>>(f, count);
    cudaCheck(cudaGetLastError());
  }

  cudaStream_t stream_ = nullptr;
  lbvh::GraphExec graph_;
  bool isWarm_ = false;
  std::vector<void*> memory_;
};

}  // namespace

std::unique_ptr<Space> makeCudaSpace() { return std::make_unique<CudaSpace>(); }

}  // namespace worlds
