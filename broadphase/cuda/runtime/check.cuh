// SPDX-License-Identifier: Zlib
// Checks CUDA calls. cudaCheck turns a failure into a SpaceError that names the call.
//
// CUDA keeps the last error of each thread until it is read, and CUB reads it. So our calls run on
// threads on which no error of the program is pending. PairFinder uses its own thread.
// DevicePairFinder runs its calls as threads.cuh describes. Any error that is pending on such a
// thread is ours, and can be cleared.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/core/space_error.h"

namespace lbvh {

/// Thrown if a CUDA call failed. Its isSticky is false, even if the error is sticky. CudaSpace
/// finds out whether the error is sticky, because CudaSpace has a stream to query.
struct CudaError : SpaceError {
  CudaError(cudaError_t error, const char* call)
      : SpaceError(std::string(call) + ": " + cudaGetErrorString(error), false), code(error) {}

  cudaError_t code;
};

inline void cudaCheckCall(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw CudaError(error, call);
}

#define cudaCheck(call) ::lbvh::cudaCheckCall((call), #call)

}  // namespace lbvh
