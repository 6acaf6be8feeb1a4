// SPDX-License-Identifier: Zlib
// Runs one job at a time for its owner, on another thread. Knows nothing of boxes or GPUs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace lbvh {

/// Only one thread at a time, the owner, may use an instance. A job sees what the owner wrote
/// before start(). Once isBusy() has returned false, the owner sees what the job wrote.
///
/// At exit the process waits for all running jobs, even if their workers were never destroyed.
/// Without this wait, the process would crash if it ended while a job starts up a GPU's driver.
class Worker {
 public:
  /// @throws std::system_error if no thread can be started
  Worker();
  /// Waits until the job has ended.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts a job, and returns at once. `job` must live until the job has ended. No other job may
  /// be running.
  void start(std::function<void()>& job) noexcept;
  bool isBusy() const noexcept;

  /// Waits until the job has ended.
  void settle() const noexcept;
  /// Waits until the job has ended.
  /// @throws what the job threw; a second call does not throw it again
  void wait();

  /// Calls start(), meanwhile() on this thread, and wait(). @throws what f throws
  template <class F, class Meanwhile>
  void run(const F& f, const Meanwhile& meanwhile) {
    static_assert(noexcept(meanwhile()), "meanwhile() must not throw while the job runs");
    std::function<void()> job = std::ref(f);
    start(job);
    meanwhile();
    wait();
  }
  template <class F>
  void run(const F& f) {
    run(f, []() noexcept {});
  }

  /// Registers again the exit handler that waits for running jobs. Exit handlers run in reverse
  /// order, and this one must run before the handlers that libraries have registered in a job.
  static void awaitAtExit() noexcept;

  /// False in a child process after fork(), which has no copy of the thread. Then nothing may be
  /// started.
  bool isHere() const noexcept;

 private:
  struct Thread;
  Thread* thread_;  ///< leaked in a child process after fork()
};

}  // namespace lbvh
