// SPDX-License-Identifier: Zlib
// Splits index ranges over the host's threads. Does not depend on boxes or pairs. Only tasks.cpp
// includes oneTBB.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lbvh {

class HostTasks {
 public:
  static int machineThreads();

  /// The number of threads that a finder uses. 0 requests all threads of the machine. More than
  /// kMaxThreads are used only if the machine has them, because each thread needs its own memory.
  static int threadsFor(int requested) {
    return requested == 0 ? machineThreads()
                          : std::min(requested, std::max(machineThreads(), kMaxThreads));
  }
  static constexpr int kMaxThreads = 64;

  /// @param threads at least 1; with 1 oneTBB is not used
  explicit HostTasks(int threads);
  ~HostTasks();

  int threads() const { return threads_; }

  /// The number of parts into which n elements are split. It is between one and the number of
  /// threads. If there are several parts, each has at least `grain` elements.
  std::size_t parts(std::size_t n, std::size_t grain) const {
    return std::clamp<std::size_t>(n / grain, 1, static_cast<std::size_t>(threads_));
  }

  /// Calls f(begin, end) for disjoint ranges that cover [0, n), in parallel.
  template <class F>
  void forRanges(std::size_t n, std::size_t grain, const F& f) {
    if (n == 0) return;
    if (threads_ == 1 || n <= grain) return f(std::size_t{0}, n);
    const Task<F> task{&f};
    publish(&task.fork);
    run(n, grain, &callTask<F>, &task);
    receive(&task.join);
  }

  /// Calls f(part, begin, end) for each of `parts` contiguous parts of [0, n), in parallel.
  template <class F>
  void forParts(std::size_t n, std::size_t parts, const F& f) {
    forRanges(parts, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t part = begin; part < end; ++part)
        f(part, n * part / parts, n * (part + 1) / parts);
    });
  }

  /// Calls f(worker, begin, end) for ranges of at most `grain` elements that cover [0, n). There is
  /// at most one worker per thread. A worker that has finished a range takes the next one. If f
  /// returns false, its worker takes no more ranges.
  template <class F>
  void forWorkers(std::size_t n, std::size_t grain, const F& f) {
    std::atomic<std::size_t> next{0};
    const std::size_t workers = parts(n, grain);
    forParts(workers, workers, [&](std::size_t worker, std::size_t, std::size_t) {
      for (;;) {
        const std::size_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= n || !f(worker, begin, std::min(n, begin + grain))) return;
      }
    });
  }

 private:
  struct Arena;
  using RangeCall = void (*)(const void* task, std::size_t begin, std::size_t end);

  template <class F>
  struct Task {
    const F* f;
    // ThreadSanitizer gets the addresses of these members. If both shared one address, the
    // sanitizer would assume that calls of f are ordered among themselves.
    char fork = 0, join = 0;
  };

  template <class F>
  static void callTask(const void* data, std::size_t begin, std::size_t end) {
    const auto* task = static_cast<const Task<F>*>(data);
    receive(&task->fork);
    (*task->f)(begin, end);
    publish(&task->join);
  }

  void run(std::size_t n, std::size_t grain, RangeCall call, const void* task);

#if defined(__SANITIZE_THREAD__)
  // oneTBB is not instrumented, so these calls report its fork and join to the sanitizer.
  static void publish(const char* at) { __tsan_release(const_cast<char*>(at)); }
  static void receive(const char* at) { __tsan_acquire(const_cast<char*>(at)); }
#else
  static void publish(const char*) {}
  static void receive(const char*) {}
#endif

  int threads_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace lbvh
