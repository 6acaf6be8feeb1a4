// An NVIDIA GPU as an execution space (contract: space.h): one stream, CUB for sorts, sums and
// scans. Nothing waits but wait(); every call is checked.
#pragma once

#include <cooperative_groups.h>
#include <nvtx3/nvToolsExt.h>
#include <thrust/iterator/counting_iterator.h>

#include <atomic>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "broadphase/exec/cuda_buffer.cuh"
#include "broadphase/exec/cuda_check.cuh"
#include "broadphase/exec/space.h"
#include "broadphase/stages/step_header.h"
#include "broadphase/stages/traversal.h"

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

/// Slots behind the pairs that were found sort behind all of them.
struct PadPairs {
  View<Pair> pairs;
  const std::uint64_t* found;

  __device__ void operator()(std::uint32_t i) const {
    if (i >= *found) pairs[i] = {~0u, ~0u};
  }
};

struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, const T& b) const {
    a += b;
    return a;
  }
};

class CudaSpace {
 public:
  template <class T>
  using Buffer = DeviceBuffer<T>;
  template <class T>
  using HostBuffer = PinnedBuffer<T>;
  template <class T>
  using UploadBuffer = lbvh::UploadBuffer<T>;

  static constexpr bool kKnowsCounts = false;
  static constexpr bool kHasOwnSearch = false;
  static constexpr std::size_t kDeltaChunk = 16;

  CudaSpace() { cudaCheck(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaSpace() {
    cudaStreamSynchronize(stream_);
    for (const Timed& timed : timed_) {
      cudaEventDestroy(timed.begin);
      cudaEventDestroy(timed.end);
    }
    cudaStreamDestroy(stream_);
  }
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;

  template <class Body>
  void forEach(std::size_t n, const Body& body) {
    if (n == 0) return;
    forEachKernel<<<blocks(n), kThreads, 0, stream_>>>(body, static_cast<std::uint32_t>(n));
    cudaCheck(cudaGetLastError());
  }

  template <class Body>
  void append(std::size_t n, const Body& body, const PairOutput& out) {
    if (n == 0) return;
    appendKernel<<<blocks(n), kThreads, 0, stream_>>>(body, static_cast<std::uint32_t>(n), out);
    cudaCheck(cudaGetLastError());
  }

  template <class T, class Body>
  void reduce(std::size_t n, const Body& body, T* sum) {
    withScratch([&](void* scratch, std::size_t& bytes) {
      return cub::DeviceReduce::TransformReduce(
          scratch, bytes, thrust::counting_iterator<std::uint32_t>(0), sum,
          static_cast<std::uint32_t>(n), Plus{}, body, T{}, stream_);
    });
  }

  template <class T>
  void sumBefore(View<T> counts) {
    withScratch([&](void* scratch, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts.data, counts.data, Plus{}, T{},
                                            static_cast<std::uint32_t>(counts.size), stream_);
    });
  }

  template <class Key>
  void sortByKey(View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
                 View<std::uint32_t> spareValues, int bits) {
    cub::DoubleBuffer<Key> keyBuffers(keys.data, spareKeys.data);
    cub::DoubleBuffer<std::uint32_t> valueBuffers(values.data, spareValues.data);
    withScratch([&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keyBuffers, valueBuffers,
                                             static_cast<std::uint32_t>(keys.size), 0, bits,
                                             stream_);
    });
    copyBack(keys, keyBuffers.Current());
    copyBack(values, valueBuffers.Current());
  }

  /// A pair is a little-endian word with `second` on top: sorted by it, then stably by `first`.
  View<Pair> sortPairs(View<Pair> pairs, View<Pair> spare, int idBits, const std::uint64_t* found) {
    if (pairs.empty() || idBits == 0) return pairs;
    forEach(pairs.size, PadPairs{pairs, found});
    cub::DoubleBuffer<unsigned long long> words(reinterpret_cast<unsigned long long*>(pairs.data),
                                                reinterpret_cast<unsigned long long*>(spare.data));
    for (const int lowBit : {32, 0})
      withScratch([&](void* scratch, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, words,
                                              static_cast<std::uint32_t>(pairs.size), lowBit,
                                              lowBit + idBits, stream_);
      });
    return {reinterpret_cast<Pair*>(words.Current()), pairs.size};
  }

  template <class T>
  View<const T> upload(View<const T> host, UploadBuffer<T>& buffer) {
    return buffer.upload(host, stream_);
  }

  /// Forgets what was begun before an error, and copies while the caller waits.
  template <class T>
  void abandonAndCopy(View<const T> host, T* device) {
    inUse_ = 0;
    if (host.empty()) return;
    cudaCheck(
        cudaMemcpyAsync(device, host.data, host.size * sizeof(T), cudaMemcpyHostToDevice, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
  }

  /// Kernels write the host's memory through its mapping, so only what there is travels.
  template <class T>
  View<T> hostRoom(Buffer<T>&, HostBuffer<T>& own, std::size_t n) {
    return own.ensure(n);
  }

  StepHeader wait(const StepHeader* header) {
    StepHeader* copy = header_.ensure(1).data;
    cudaCheck(cudaMemcpyAsync(copy, header, sizeof *copy, cudaMemcpyDeviceToHost, stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
    for (std::size_t i = 0; i < inUse_; ++i) {
      float ms = 0;
      cudaCheck(cudaEventElapsedTime(&ms, timed_[i].begin, timed_[i].end));
      *timed_[i].ms += static_cast<double>(ms);
    }
    inUse_ = 0;
    return *copy;
  }

  /// Two events on the stream and a range in the profiler.
  class Range {
   public:
    Range(const char* name, cudaEvent_t end, cudaStream_t stream) : end_(end), stream_(stream) {
      nvtxRangePushA(name);
    }
    ~Range() {
      cudaEventRecord(end_, stream_);  // an error here comes back from wait()
      nvtxRangePop();
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    cudaEvent_t end_;
    cudaStream_t stream_;
  };

  Range timed(const char* name, double& ms) {
    if (inUse_ == timed_.size()) {
      timed_.reserve(inUse_ + 1);
      Timed timed{};
      cudaCheck(cudaEventCreate(&timed.begin));
      if (const cudaError_t error = cudaEventCreate(&timed.end); error != cudaSuccess) {
        cudaEventDestroy(timed.begin);
        throwCudaError(error, "cudaEventCreate");
      }
      timed_.push_back(timed);
    }
    Timed& next = timed_[inUse_];
    next.ms = &ms;
    cudaCheck(cudaEventRecord(next.begin, stream_));
    ++inUse_;
    return Range(name, next.end, stream_);
  }

 private:
  struct Timed {
    cudaEvent_t begin, end;
    double* ms;
  };

  static unsigned blocks(std::size_t n) {
    return static_cast<unsigned>((n + kThreads - 1) / kThreads);
  }

  /// CUB's two calls: how much scratch, then the work.
  template <class Call>
  void withScratch(const Call& call) {
    std::size_t bytes = 0;
    checkCub([&] { return call(nullptr, bytes); });
    void* scratch = scratch_.ensure(bytes + 1).data;
    checkCub([&] { return call(scratch, bytes); });
  }

  /// CUB returns most errors, but throws those it meets while it looks at the device for the first
  /// time; whoever calls it after that waits for ever. So nobody does: the one fact that all
  /// instances in a process share.
  template <class Call>
  static void checkCub(const Call& call) {
    if (cubIsStuck_) throw SpaceError("CUB could not look at the device", true);
    try {
      cudaCheckCall(call(), "CUB");
    } catch (const SpaceError&) {
      throw;
    } catch (const std::runtime_error& error) {
      cubIsStuck_ = true;
      throw SpaceError(error.what(), true);
    }
  }

  template <class T>
  void copyBack(View<T> to, const T* from) {
    if (from == to.data) return;
    cudaCheck(
        cudaMemcpyAsync(to.data, from, to.size * sizeof(T), cudaMemcpyDeviceToDevice, stream_));
  }

  static inline std::atomic<bool> cubIsStuck_{false};

  cudaStream_t stream_ = nullptr;
  DeviceBuffer<unsigned char> scratch_;
  PinnedBuffer<StepHeader> header_;
  std::vector<Timed> timed_;  ///< kept from step to step
  std::size_t inUse_ = 0;
};

}  // namespace lbvh
