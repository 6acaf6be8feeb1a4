// SPDX-License-Identifier: Zlib
// Every CUDA call goes through cudaCheck. A failure becomes a SpaceError that names the call.
//
// CUDA keeps the last error of a thread until somebody asks for it, and CUB asks. So our calls are
// made where no error of the program's is pending: PairFinder's on a thread of its own,
// DevicePairFinder's as threads.cuh says. Whatever is pending there is ours to clear.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "broadphase/core/space_error.h"

namespace lbvh {

/// Whether it is sticky is for the space to find out: it has a stream to ask.
struct CudaError : SpaceError {
  CudaError(cudaError_t error, const char* call)
      : SpaceError(std::string(call) + ": " + cudaGetErrorString(error), false), code(error) {}

  /// Somebody did what a capture forbids: in another thread perhaps, and to no harm but the
  /// capture's.
  bool isOfCapture() const {
    return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
  }

  cudaError_t code;
};

inline void cudaCheckCall(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw CudaError(error, call);
}

#define cudaCheck(call) ::lbvh::cudaCheckCall((call), #call)

}  // namespace lbvh
