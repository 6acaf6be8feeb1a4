// Splits index ranges over the host's threads with oneTBB. Knows nothing of boxes or pairs.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lbvh {

class HostTasks {
 public:
  static int machineThreads() { return tbb::info::default_concurrency(); }

  explicit HostTasks(int threads) : threads_(threads) {
    // Asking oneTBB for more than the machine has only makes it print a warning.
    if (threads_ > 1)
      arena_ = std::make_unique<tbb::task_arena>(std::min(threads_, machineThreads()));
  }

  int threads() const { return threads_; }

  /// How many parts of at least `grain` elements n is worth, at most one a thread, at least one.
  std::size_t parts(std::size_t n, std::size_t grain) const {
    return std::clamp<std::size_t>(n / grain, 1, static_cast<std::size_t>(threads_));
  }

  /// f(begin, end) over disjoint ranges that cover [0, n), in parallel.
  template <class F>
  void forRanges(std::size_t n, std::size_t grain, const F& f) {
    if (n == 0) return;
    if (threads_ == 1 || n <= grain) return f(std::size_t{0}, n);
    run([&] {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n, grain),
                        [&](const tbb::blocked_range<std::size_t>& range) {
                          Joined joined(this);
                          f(range.begin(), range.end());
                        });
    });
  }

  /// f(part, begin, end) for each of `parts` contiguous parts of [0, n), in parallel.
  template <class F>
  void forParts(std::size_t n, std::size_t parts, const F& f) {
    const auto one = [&](std::size_t part) { f(part, n * part / parts, n * (part + 1) / parts); };
    if (threads_ == 1 || parts <= 1) {
      for (std::size_t part = 0; part < parts; ++part) one(part);
      return;
    }
    run([&] {
      tbb::parallel_for(std::size_t{0}, parts, [&](std::size_t part) {
        Joined joined(this);
        one(part);
      });
    });
  }

 private:
#if defined(__SANITIZE_THREAD__)
  // The distribution's oneTBB is not instrumented: tell the sanitizer what its fork and join order.
  struct Joined {
    explicit Joined(HostTasks* t) : tasks(t) { __tsan_acquire(&tasks->fork_); }
    ~Joined() { __tsan_release(&tasks->join_); }
    HostTasks* tasks;
  };
  template <class F>
  void run(const F& f) {
    __tsan_release(&fork_);
    arena_->execute(f);
    __tsan_acquire(&join_);
  }
  char fork_ = 0, join_ = 0;
#else
  struct Joined {
    explicit Joined(HostTasks*) {}
    ~Joined() {}
  };
  template <class F>
  void run(const F& f) {
    arena_->execute(f);
  }
#endif

  int threads_;
  std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace lbvh
