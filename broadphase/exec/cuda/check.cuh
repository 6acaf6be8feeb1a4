// Every CUDA call goes through cudaCheck: a failure becomes a SpaceError, with the text of the
// call.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/pipelines/pipeline.h"

namespace lbvh {

/// A sticky error (a kernel that faulted) answers every later call; others pass. While a stream is
/// being recorded nothing runs, and the question itself is refused.
[[noreturn]] inline void throwCudaError(cudaError_t error, const char* call) {
  cudaGetLastError();
  const cudaError_t now = cudaDeviceSynchronize();
  const bool isRefused =
      now >= cudaErrorStreamCaptureUnsupported && now <= cudaErrorStreamCaptureWrongThread;
  const bool isSticky = now != cudaSuccess && !isRefused;
  throw SpaceError(std::string(call) + ": " + cudaGetErrorString(error), isSticky);
}

inline void cudaCheckCall(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throwCudaError(error, call);
}

#define cudaCheck(call) ::lbvh::cudaCheckCall((call), #call)

}  // namespace lbvh
