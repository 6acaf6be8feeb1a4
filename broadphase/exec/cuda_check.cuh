// Every CUDA call goes through cudaCheck: a failure becomes a SpaceError, with the text of the
// call.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/pipeline.h"

namespace lbvh {

/// A sticky error (a kernel that faulted) answers every later call; others pass.
[[noreturn]] inline void throwCudaError(cudaError_t error, const char* call) {
  cudaGetLastError();
  const bool isSticky = cudaDeviceSynchronize() != cudaSuccess;
  throw SpaceError(std::string(call) + ": " + cudaGetErrorString(error), isSticky);
}

inline void cudaCheckCall(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throwCudaError(error, call);
}

#define cudaCheck(call) ::lbvh::cudaCheckCall((call), #call)

}  // namespace lbvh
