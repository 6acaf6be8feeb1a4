// SPDX-License-Identifier: Zlib
// The host's cores as an execution space, with oneTBB. Each instance has its own arena. With one
// thread oneTBB is not used.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/radix_sort.h"
#include "broadphase/host/parallel/stage_timer.h"
#include "broadphase/host/parallel/tasks.h"

namespace lbvh {

class HostSpace {
 public:
  using Memory = HostMemory;
  template <class T>
  using Buffer = lbvh::HostBuffer<T>;

  /// @param threads at least 1
  explicit HostSpace(int threads) : tasks_(threads) {}

  static HostMemory memory() { return {}; }
  HostTasks& tasks() { return tasks_; }

  template <class Body>
  void forEach(std::size_t n, const Body& body) {
    std::size_t grain = kGrain;
    if constexpr (requires { Body::kGrain; }) grain = Body::kGrain;
    tasks_.forRanges(n, grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(static_cast<std::uint32_t>(i));
    });
  }

  template <class T, class Body>
  void reduce(std::size_t n, const Body& body, T* sum) {
    const std::size_t parts = tasks_.parts(n, kGrain);
    T* partial = reinterpret_cast<T*>(partials_.ensure(parts * sizeof(T)).data());
    tasks_.forParts(n, parts, [&](std::size_t part, std::size_t begin, std::size_t end) {
      T mine;
      for (std::size_t i = begin; i < end; ++i) mine += body(static_cast<std::uint32_t>(i));
      new (partial + part) T(mine);
    });
    *sum = T{};
    for (std::size_t part = 0; part < parts; ++part) *sum += partial[part];
  }

  /// Sorts by `bits` bits of the keys from bit `shift` on.
  template <class Key>
  void sortByKey(View<Key> keys, View<std::uint32_t> values, View<Key> spareKeys,
                 View<std::uint32_t> spareValues, int shift, int bits) {
    sort_.byKey(tasks_, keys, values, spareKeys, spareValues, shift, bits);
  }

  HostRadixSort& radixSort() { return sort_; }
  const HostRadixSort& radixSort() const { return sort_; }

  StageTimer timed(const char* /*name*/, double& ms) { return StageTimer(ms, timesStages_); }
  void setTimesStages(bool does) { timesStages_ = does; }

 private:
  // With this many elements even cheap bodies cost far more than a task.
  static constexpr std::size_t kGrain = 4096;

  HostTasks tasks_;
  Buffer<std::byte> partials_;
  HostRadixSort sort_;
  bool timesStages_ = true;
};

}  // namespace lbvh
