// SPDX-License-Identifier: Zlib
// Lists all kernels that a CudaSpace launches, so that a finder can load them when it is created.
// By default, CUDA loads a kernel at its first use. Such a load can wait for all work of the
// program, and can fail while a stream is captured.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "broadphase/cuda/runtime/check.cuh"

namespace lbvh {

class KernelList {
 public:
  /// Any code that launches a kernel must call this. The call does nothing when it runs. Compiling
  /// it instantiates an Entry, whose constructor adds the kernel to the list before main() begins.
  template <auto kKernel>
  static void add() {
    static_cast<void>(&entry<kKernel>);
  }

  /// Loads all kernels on the current device. @throws CudaError
  static void load() {
    cudaFuncAttributes attributes{};
    for (const Entry* each = first; each != nullptr; each = each->next)
      cudaCheck(cudaFuncGetAttributes(&attributes, each->kernel));
  }

 private:
  struct Entry {
    explicit Entry(const void* listed) : kernel(listed), next(std::exchange(first, this)) {}
    const void* kernel;
    const Entry* next;
  };
  static inline const Entry* first = nullptr;
  template <auto kKernel>
  static inline const Entry entry{reinterpret_cast<const void*>(kKernel)};
};

}  // namespace lbvh
