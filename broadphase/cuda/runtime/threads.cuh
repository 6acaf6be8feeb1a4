// SPDX-License-Identifier: Zlib
// Preserves the state that CUDA keeps for each thread of the host: the current device, the capture
// mode and the last error.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

/// Makes another device current during its lifetime. It is only for threads of the program. On our
/// own threads, restoring the device would initialize device 0 unnecessarily.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    cudaCheck(cudaGetDevice(&before_));
    if (device == before_) return;
    cudaCheck(cudaSetDevice(device));
    isOther_ = true;
  }
  ~CurrentDevice() {
    if (isOther_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool isOther_ = false;
};

/// During its lifetime, CUDA calls on this thread do not disturb stream captures of the program.
/// Otherwise, while a stream is captured in global mode, calls that allocate, free, query or wait
/// would fail on every thread and invalidate the capture.
class RelaxedCapture {
 public:
  RelaxedCapture() {
    if (cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess) return;
    cudaGetLastError();
    isExchanged_ = false;
  }
  ~RelaxedCapture() {
    if (isExchanged_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool isExchanged_ = true;
};

/// Runs f on a thread without a pending error, and clears the errors that f leaves. If an error is
/// pending on this thread, f runs on a new thread, and the pending error stays.
/// @param stream the stream on which f works
/// @throws std::runtime_error if an error is pending and `stream` is the per-thread default stream
template <class F>
void withoutPendingError(cudaStream_t stream, const F& f) {
  const auto run = [&f] {
    struct ClearOwn {
      ~ClearOwn() { cudaGetLastError(); }
    } const clearOwn;
    f();
  };
  const cudaError_t pending = cudaPeekAtLastError();
  if (pending == cudaSuccess) return run();
  if (stream == cudaStreamPerThread)
    throw std::runtime_error(
        std::string(
            "cudaStreamPerThread cannot be used while an error is pending on this thread: ") +
        cudaGetErrorString(pending));
  int device = 0;
  cudaGetDevice(&device);
  std::exception_ptr error;
  std::thread([&] {
    try {
      cudaCheck(cudaSetDevice(device));
      run();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(std::move(error));
}

}  // namespace lbvh
