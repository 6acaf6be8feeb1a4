// SPDX-License-Identifier: Zlib
// A thread that does one job at a time for its owner. Knows nothing of boxes or GPUs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace lbvh {

/// Its calls belong to one thread at a time, the owner's. What the owner wrote before a job began
/// the job sees, and the owner sees what the job wrote once isBusy() was false.
///
/// A process that ends waits for the jobs that run, also for those of workers that nobody
/// destroyed: a driver that is being started does not bear the end of its process.
class Worker {
 public:
  /// @throws std::system_error if the system gives no thread
  Worker();
  /// Waits for the job.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Begins a job, which must live until it has ended, and returns at once. No other job runs.
  void start(std::function<void()>& job) noexcept;
  bool isBusy() const noexcept;

  /// Waits for the job.
  void settle() const noexcept;
  /// The same. @throws what the job threw, once
  void wait();

  /// start() and wait(). @throws what f throws
  template <class F>
  void run(F&& f) {
    std::function<void()> job = std::ref(f);
    start(job);
    wait();
  }

  /// Registers the wait for running jobs at the process's end once more: what is registered last
  /// comes first, and a job may have made libraries register their own end.
  static void awaitAtExit() noexcept;

  /// False in a child after fork(), which has no copy of the thread: then nothing may be started.
  bool isHere() const noexcept;

 private:
  struct Thread;
  Thread* thread_;  ///< left behind in a child after fork()
};

}  // namespace lbvh
