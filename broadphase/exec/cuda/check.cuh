// Every CUDA call goes through cudaCheck. A failure becomes a SpaceError that names the call.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/exec/space.h"

namespace lbvh {

/// After a sticky error (a kernel that faulted) every later call fails; other errors pass. While a
/// stream is captured nothing runs, and CUDA refuses the question itself.
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
