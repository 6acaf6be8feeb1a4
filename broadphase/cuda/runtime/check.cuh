// SPDX-License-Identifier: Zlib
// Every CUDA call goes through cudaCheck. A failure becomes a SpaceError that names the call.
//
// CUDA keeps the last error of a thread until it is read, and CUB reads it. So our calls are made
// on threads where no error of the program is pending. PairFinder makes them on its own thread, and
// DevicePairFinder as threads.cuh describes. Any error that is pending there is ours, and may be
// cleared.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/core/space_error.h"

namespace lbvh {

/// CudaSpace finds out whether the error is sticky, because it has a stream to query.
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
