// SPDX-License-Identifier: Zlib
// Atomics of gpu_micro: on one address, as appending pairs does, and on many, as the hierarchy
// does.
#include <cstdint>
#include <stdexcept>

#include "broadphase/core/atomics.h"
#include "broadphase/cuda/runtime/buffer.cuh"
#include "gpu_micro.h"
#include "gpu_micro_model.h"
#include "gpu_micro_time.cuh"

namespace micro {
namespace {

constexpr unsigned kThreads = 128;

/// `op` in each thread, so many times. The results are used, so that the atomics must return them.
template <class Op>
__global__ void repeat(Op op, unsigned times, std::uint32_t* sink) {
  const std::uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t seen = 0;
  for (unsigned i = 0; i < times; ++i) seen ^= op(thread, i);
  if (seen == 0x9E3779B9) *sink = seen;
}

/// Of each warp the first `lanes` add.
template <class T>
struct AddToOne {
  T* sum;
  unsigned lanes;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned) const {
    if (thread % 32 >= lanes) return 0;
    return static_cast<std::uint32_t>(atomicAdd(sum, T{1}));
  }
};

/// Nobody looks at the old value.
struct AddToOneBlindly {
  std::uint32_t* sum;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned) const {
    atomicAdd(sum, 1 + thread % 2);  // a constant would let the compiler add for the whole warp
    return 0;
  }
};

/// Of each thread its own word, adjacent or anywhere; a power of two of them.
struct ExchangeOwn {
  std::uint32_t* words;
  std::uint32_t mask, stride;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned i) const {
    return atomicExch(&words[(thread + i * 7919) * stride & mask], thread);
  }
};

struct ExchangeAndPublishOwn {
  std::uint32_t* words;
  std::uint32_t mask, stride;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned i) const {
    return lbvh::exchangeAndPublish(&words[(thread + i * 7919) * stride & mask], thread);
  }
};

class Atomics {
 public:
  explicit Atomics(bool isTiny) : blocks_(isTiny ? 4 : 1024), words_(isTiny ? 1 << 9 : 1 << 20) {
    sums_.ensure(1);
    sink_.ensure(1);
    memory_.ensure(words_);
    fillNow(memory_.data(), 0, words_ * sizeof(std::uint32_t));
  }

  /// @return atomics a microsecond, by lane
  template <class Op>
  double rate(const Op& op, unsigned times, unsigned lanes) {
    const double us = watch_.onStream(
        [&] { repeat<<<blocks_, kThreads, 0, watch_.stream()>>>(op, times, sink_.data()); });
    return static_cast<double>(blocks_) * kThreads / 32 * lanes * times / us;
  }

  /// Checks the sum, too: a kernel that did nothing is no measurement.
  template <class T>
  double rateOnOne(unsigned lanes) {
    const unsigned times = 16 * (lanes == 1 ? 16 : 1);
    fillNow(sums_.data(), 0, sizeof(unsigned long long));
    T* const sum = reinterpret_cast<T*>(sums_.data());
    const double found = rate(AddToOne<T>{sum, lanes}, times, lanes);
    T added = 0;
    cudaCheck(cudaMemcpy(&added, sum, sizeof added, cudaMemcpyDeviceToHost));
    const std::uint64_t adds = std::uint64_t{blocks_} * kThreads / 32 * lanes * times;
    if (added != static_cast<T>(adds * (Stopwatch::kRuns + 1)))
      throw std::runtime_error("atomicAdd: the sum is wrong");
    return found;
  }

  double rateOnOneBlindly() {
    return rate(AddToOneBlindly{reinterpret_cast<std::uint32_t*>(sums_.data())}, 16, 32);
  }

  /// @param stride odd; 1: adjacent
  template <class Op>
  double rateOnMany(std::uint32_t stride) {
    return rate(Op{memory_.data(), words_ - 1, stride}, 16, 32);
  }

  std::uint32_t words() const { return words_; }

 private:
  const unsigned blocks_;
  const std::uint32_t words_;
  Stopwatch watch_;
  lbvh::DeviceBuffer<unsigned long long> sums_;
  lbvh::DeviceBuffer<std::uint32_t> sink_, memory_;
};

}  // namespace

void measureAtomics(bool isTiny, Rows& rows) {
  Atomics atomics(isTiny);
  const double one = assumed::atomicsOnOneAddress(), many = assumed::atomicsOnManyAddresses();
  const char* unit = "lanes/us";
  rows.push_back({"atomicAdd on one address, 32 lanes, 32 bits", 0, unit,
                  atomics.rateOnOne<std::uint32_t>(32), one});
  rows.push_back({"atomicAdd on one address, 1 lane of 32, 32 bits", 0, unit,
                  atomics.rateOnOne<std::uint32_t>(1), one});
  rows.push_back({"atomicAdd on one address, 32 lanes, 64 bits", 0, unit,
                  atomics.rateOnOne<unsigned long long>(32), one});
  rows.push_back({"atomicAdd on one address, 1 lane of 32, 64 bits", 0, unit,
                  atomics.rateOnOne<unsigned long long>(1), one});
  rows.push_back({"atomicAdd on one address, 32 lanes, 32 bits, result unused", 0, unit,
                  atomics.rateOnOneBlindly(), one});
  const std::uint64_t bytes = std::uint64_t{atomics.words()} * sizeof(std::uint32_t);
  constexpr std::uint32_t kAnywhere = 0x9E3779B1;
  rows.push_back({"atomicExch on adjacent words, of so many bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeOwn>(1), many});
  rows.push_back({"atomicExch on words anywhere, of so many bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeOwn>(kAnywhere), many});
  rows.push_back({"atomicExch between fences on words anywhere, of so many bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeAndPublishOwn>(kAnywhere), many});
}

}  // namespace micro
