// SPDX-License-Identifier: Zlib
// The kernels of the CUDA space that are not CUB's: a thread for each element.
#pragma once

#include <cstdint>

namespace lbvh {

inline constexpr unsigned kThreads = 128;

template <class Body>
__global__ void __launch_bounds__(kThreads) forEachKernel(Body body, std::uint32_t n) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) body(i);
}

struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, const T& b) const {
    a += b;
    return a;
  }
};

struct Less {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

}  // namespace lbvh
