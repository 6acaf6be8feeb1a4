// SPDX-License-Identifier: Zlib
// Measures atomics for gpu_micro: on one address, as when pairs are appended, and on many
// addresses, as when a hierarchy is built.
#include <cstdint>
#include <stdexcept>

#include "broadphase/core/atomics.h"
#include "broadphase/cuda/runtime/memory.cuh"
#include "gpu_micro.h"
#include "gpu_micro_model.h"
#include "gpu_micro_time.cuh"

namespace micro {
namespace {

constexpr unsigned kThreads = 128;

/// Calls `op` in each thread, `times` times per thread. Uses the results, so that the compiler
/// keeps the atomics' return values.
template <class Op>
__global__ void repeat(Op op, unsigned times, std::uint32_t* sink) {
  const std::uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t seen = 0;
  for (unsigned i = 0; i < times; ++i) seen ^= op(thread, i);
  if (seen == 0x9E3779B9) *sink = seen;
}

/// Adds 1 to `sum` in the first `lanes` lanes of each warp.
template <class T>
struct AddToOne {
  T* sum;
  unsigned lanes;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned) const {
    if (thread % 32 >= lanes) return 0;
    return static_cast<std::uint32_t>(atomicAdd(sum, T{1}));
  }
};

/// Adds to `sum` in all lanes, and ignores the old value.
struct AddToOneBlindly {
  std::uint32_t* sum;
  __device__ std::uint32_t operator()(std::uint32_t thread, unsigned) const {
    // With a constant the compiler would emit one addition for the whole warp.
    atomicAdd(sum, 1 + thread % 2);
    return 0;
  }
};

/// In each repetition, each thread exchanges a word of its own. With `stride` 1 these words are
/// adjacent. The number of words is a power of two.
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

  /// @return atomics per microsecond, of all lanes
  template <class Op>
  double rate(const Op& op, unsigned times, unsigned lanes) {
    const double us = watch_.onStream(
        [&] { repeat<<<blocks_, kThreads, 0, watch_.stream()>>>(op, times, sink_.data()); });
    return static_cast<double>(blocks_) * kThreads / 32 * lanes * times / us;
  }

  /// Also checks the sum, because the time of a kernel that did nothing would be meaningless.
  template <class T>
  double rateOnOne(unsigned lanes) {
    const unsigned times = 16 * (lanes == 1 ? 16 : 1);
    fillNow(sums_.data(), 0, sizeof(unsigned long long));
    T* const sum = reinterpret_cast<T*>(sums_.data());
    const double found = rate(AddToOne<T>{sum, lanes}, times, lanes);
    T added = 0;
    cudaCheck(cudaMemcpy(&added, sum, sizeof added, cudaMemcpyDeviceToHost));
    const std::uint64_t adds = std::uint64_t{blocks_} * kThreads / 32 * lanes * times;
    const T expected = static_cast<T>(adds * (Stopwatch::kRuns + 1));
    if (added != expected)
      throw std::runtime_error("atomicAdd: the sum is " + std::to_string(added) + " instead of " +
                               std::to_string(expected));
    return found;
  }

  double rateOnOneBlindly() {
    return rate(AddToOneBlindly{reinterpret_cast<std::uint32_t*>(sums_.data())}, 16, 32);
  }

  /// @param stride must be odd; 1 for adjacent words
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
  rows.push_back({"atomicExch on adjacent words, size in bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeOwn>(1), many});
  rows.push_back({"atomicExch on scattered words, size in bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeOwn>(kAnywhere), many});
  rows.push_back({"atomicExch between fences on scattered words, size in bytes", bytes, unit,
                  atomics.rateOnMany<ExchangeAndPublishOwn>(kAnywhere), many});
}

}  // namespace micro
