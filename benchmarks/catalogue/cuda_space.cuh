// SPDX-License-Identifier: Zlib
// A GPU as an execution space of the catalogue (contract: space.h). Extends CudaSpace, the space of
// a step, with the functions that only the catalogue's variants need.
#pragma once

#include <cooperative_groups.h>
#include <thrust/iterator/counting_iterator.h>

#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "benchmarks/catalogue/space.h"
#include "broadphase/cuda/runtime/space.cuh"

namespace lbvh::variants {

/// Appends pairs with one atomic addition for all threads of a warp that push at the same time.
struct DeviceSink {
  PairOutput out;

  __device__ bool push(Pair pair) {
    const auto together = cooperative_groups::coalesced_threads();
    unsigned long long at = 0;
    if (together.thread_rank() == 0)
      at = atomicAdd(reinterpret_cast<unsigned long long*>(out.count),
                     static_cast<unsigned long long>(together.size()));
    at = together.shfl(at, 0) + together.thread_rank();
    if (at < out.pairs.size()) out.pairs[at] = pair;
    return at <= out.limit;
  }
};

template <class Body>
struct Append {
  Body body;
  std::uint32_t n;
  PairOutput out;
};

template <class Body>
__global__ void __launch_bounds__(kThreads) appendKernel(Append<Body> append) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  DeviceSink sink{append.out};
  if (i < append.n) append.body(i, sink);
}

template <class Key>
struct CopyBoth {
  View<const Key> keys;
  View<const std::uint32_t> values;
  Key* toKeys;
  std::uint32_t* toValues;
  __device__ void operator()(std::uint32_t i) const {
    toKeys[i] = keys[i];
    toValues[i] = values[i];
  }
};

class CatalogueCuda : public CudaSpace {
 public:
  using CudaSpace::CudaSpace;

  using Memory = DeviceMemory;
  template <class T>
  using Buffer = DeviceBuffer<T>;
  template <class T>
  using HostBuffer = PinnedBuffer<T>;
  template <class T>
  using UploadBuffer = lbvh::UploadBuffer<T>;
  static constexpr bool kKnowsCounts = false;

  template <class Body>
  void append(std::size_t n, const Body& body, const PairOutput& out) {
    launch<appendKernel<Body>>((n + kThreads - 1) / kThreads, kThreads,
                               Append<Body>{body, count(n), out});
  }

  template <class T, class Body>
  void reduce(std::size_t n, const Body& body, T* sum) {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return cub::DeviceReduce::TransformReduce(scratch, bytes,
                                                thrust::counting_iterator<std::uint32_t>(0), sum,
                                                count(n), Plus{}, body, T{}, stream);
    });
  }

  template <class T>
  void sumBefore(View<T> counts) {
    callCub([&](void* scratch, std::size_t& bytes, cudaStream_t stream) {
      return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts.data(), counts.data(), Plus{},
                                            T{}, count(counts.size()), stream);
    });
  }

  template <class Key>
  void sortByKey(View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
                 View<std::uint32_t> spareValues, int shift, int bits) {
    forEach(keys.size(), CopyBoth<Key>{keys, values, spareKeys.data(), spareValues.data()});
    sortInto(spareKeys, spareValues, keys, values, shift, bits);
  }

  Range timed(const char* name, double& ms) { return CudaSpace::timed(name, &ms); }
};

}  // namespace lbvh::variants
