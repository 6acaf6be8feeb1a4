// The host's cores as an execution space (contract: space.h), on oneTBB.
// One arena per instance, no global state; with one thread nothing of oneTBB runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "broadphase/exec/host_buffer.h"
#include "broadphase/exec/host_radix_sort.h"
#include "broadphase/exec/host_tasks.h"
#include "broadphase/exec/space.h"
#include "broadphase/stages/block_traversal.h"

namespace lbvh {

class HostSpace {
 public:
  template <class T>
  using Buffer = HostBuffer<T>;

  using TreePairs = FindBlockPairs;

  static constexpr std::size_t kDeltaChunk = 8192;

  /// @param threads at least 1
  explicit HostSpace(int threads) : tasks_(threads) {}

  int threads() const { return tasks_.threads(); }

  template <class Body>
  void forEach(std::size_t n, const Body& body) {
    std::size_t grain = kGrain;
    if constexpr (requires { Body::kGrain; }) grain = Body::kGrain;
    tasks_.forRanges(n, grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(static_cast<std::uint32_t>(i));
    });
  }

  template <class Body>
  void append(std::size_t n, const Body& body, PairOutput& out) {
    std::atomic<std::uint64_t> count{out.count};
    tasks_.forRanges(n, kAppendGrain, [&](std::size_t begin, std::size_t end) {
      Sink sink(out, count);
      for (std::size_t i = begin; i < end; ++i) body(static_cast<std::uint32_t>(i), sink);
    });
    out.count = count.load();
  }

  template <class T, class Body>
  T reduce(std::size_t n, const Body& body) {
    const std::size_t parts = tasks_.parts(n, kGrain);
    T* partial = reinterpret_cast<T*>(partials_.ensure(parts * sizeof(T)).data);
    tasks_.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      T sum;
      for (std::size_t i = begin; i < end; ++i) sum += body(static_cast<std::uint32_t>(i));
      new (partial + part) T(sum);
    });
    T sum;
    for (std::size_t part = 0; part < parts; ++part) sum += partial[part];
    return sum;
  }

  template <class Key>
  void sortByKey(View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
                 View<std::uint32_t> spareValues, int bits) {
    sort_.byKey(tasks_, keys, values, spareKeys, spareValues, bits);
  }

  template <class T>
  T sumBefore(View<T> counts) {
    T sum;
    for (T& count : counts) {
      const T before = sum;
      sum += std::exchange(count, before);
    }
    return sum;
  }

  View<Pair> sortPairs(View<Pair> pairs, View<Pair> spare, int idBits) {
    return sort_.pairs(tasks_, pairs, spare, idBits);
  }

 private:
  static constexpr std::size_t kGrain = 4096;      // cheap bodies: well above a task's cost
  static constexpr std::size_t kAppendGrain = 64;  // traversals: dear and uneven, so small pieces

  /// Collects a range's pairs and appends them in blocks: one atomic addition for many pairs.
  class Sink {
   public:
    Sink(const PairOutput& out, std::atomic<std::uint64_t>& count) : out_(out), count_(count) {}
    ~Sink() { flush(); }
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    bool push(Pair pair) {
      block_[size_++] = pair;
      return size_ < kBlock || flush();
    }

   private:
    static constexpr std::size_t kBlock = 256;

    bool flush() {
      const std::uint64_t at = count_.fetch_add(size_, std::memory_order_relaxed);
      if (at < out_.pairs.size) {
        const std::size_t room = std::min<std::size_t>(size_, out_.pairs.size - at);
        std::copy_n(block_, room, out_.pairs.data + at);
      }
      size_ = 0;
      return at <= out_.limit;
    }

    const PairOutput& out_;
    std::atomic<std::uint64_t>& count_;
    std::size_t size_ = 0;
    Pair block_[kBlock];
  };

  HostTasks tasks_;
  HostBuffer<std::byte> partials_;
  HostRadixSort sort_;
};

}  // namespace lbvh
