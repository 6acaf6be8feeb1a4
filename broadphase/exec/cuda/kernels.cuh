// SPDX-License-Identifier: Zlib
// The kernels of the CUDA space that are not CUB's: a thread for each element.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "broadphase/exec/space.h"
#include "broadphase/types.h"

namespace lbvh {

inline constexpr unsigned kThreads = 128;

/// Appends with one atomic addition for all threads that push together.
struct DeviceSink {
  PairOutput out;

  __device__ bool push(Pair pair) {
    const auto together = cooperative_groups::coalesced_threads();
    unsigned long long at = 0;
    if (together.thread_rank() == 0)
      at = atomicAdd(reinterpret_cast<unsigned long long*>(out.count),
                     static_cast<unsigned long long>(together.size()));
    at = together.shfl(at, 0) + together.thread_rank();
    if (at < out.pairs.size) out.pairs[at] = pair;
    return at <= out.limit;
  }
};

template <class Body>
__global__ void __launch_bounds__(kThreads) forEachKernel(Body body, std::uint32_t n) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) body(i);
}

template <class Body>
__global__ void __launch_bounds__(kThreads)
    appendKernel(Body body, std::uint32_t n, PairOutput out) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  DeviceSink sink{out};
  if (i < n) body(i, sink);
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
