// SPDX-License-Identifier: Zlib
// What CUDA keeps for each thread of the host, and how to leave it as it was: the current device,
// the capture mode, the last error.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

/// Another device while it lives.
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

/// While somebody captures a stream in global mode, no thread may allocate, free, query or wait:
/// such a call fails, and ends the capture. Unless it says, as here, that it has nothing to do with
/// it.
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

/// Runs f where no error is pending, and leaves none of its own: here, or if there is one here, on
/// a thread made for it. What is pending here stays.
/// @param stream that f works on
/// @throws std::runtime_error if an error is pending and `stream` is this thread's own
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
        std::string("cudaStreamPerThread with an error of CUDA pending on this thread: ") +
        cudaGetErrorString(pending));
  std::exception_ptr error;
  std::thread([&] {
    try {
      run();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(std::move(error));
}

}  // namespace lbvh
