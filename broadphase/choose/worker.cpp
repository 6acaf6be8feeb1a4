// SPDX-License-Identifier: Zlib
#include "broadphase/choose/worker.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace lbvh {
namespace {

#if defined(__unix__) || defined(__APPLE__)
long processId() noexcept { return getpid(); }
#else
long processId() noexcept { return 0; }  // there is no fork()
#endif

enum State : int { kIdle, kBusy, kQuit };

}  // namespace

struct Worker::Thread {
  // With a lock, as std::atomic's wait() loses calls where the system has no futex (libstdc++ 12).
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::atomic<int> state{kIdle};
  std::function<void()>* job = nullptr;
  std::exception_ptr error;
  const long process = processId();
  std::thread thread;
  Thread* next = nullptr;  ///< of all

  void loop() noexcept;
  void waitWhile(State s) const noexcept {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return state.load(std::memory_order_acquire) != s; });
  }
  void set(State s) noexcept {
    const std::lock_guard<std::mutex> lock(mutex);
    state.store(s, std::memory_order_release);
    changed.notify_all();
  }

  // All of this process, for its end. Never destroyed: statics of the program may come later.
  struct All {
    std::mutex mutex;
    Thread* first = nullptr;
  };
  static All& all() {
    static All* const all = new All;
    return *all;
  }
  static void awaitAll() noexcept;
};

void Worker::Thread::loop() noexcept {
  for (;;) {
    waitWhile(kIdle);
    if (state.load(std::memory_order_acquire) == kQuit) return;
    try {
      (*job)();
    } catch (...) {
      error = std::current_exception();
    }
    set(kIdle);
  }
}

// Not if the lock is taken: in a child after fork() whoever held it may be gone.
void Worker::Thread::awaitAll() noexcept {
  const std::unique_lock<std::mutex> lock(all().mutex, std::try_to_lock);
  if (!lock) return;
  for (const Thread* thread = all().first; thread != nullptr; thread = thread->next)
    if (thread->process == processId()) thread->waitWhile(kBusy);
}

Worker::Worker() {
  auto thread = std::make_unique<Thread>();
  thread->thread = std::thread(&Thread::loop, thread.get());
  thread_ = thread.release();
  static const bool isRegistered = (awaitAtExit(), true);
  static_cast<void>(isRegistered);
  Thread::All& all = Thread::all();
  const std::lock_guard<std::mutex> lock(all.mutex);
  thread_->next = std::exchange(all.first, thread_);
}

Worker::~Worker() {
  if (!isHere()) return;
  settle();
  {
    Thread::All& all = Thread::all();
    const std::lock_guard<std::mutex> lock(all.mutex);
    Thread** at = &all.first;
    while (*at != thread_) at = &(*at)->next;
    *at = thread_->next;
  }
  thread_->set(kQuit);
  thread_->thread.join();
  delete thread_;
}

void Worker::awaitAtExit() noexcept { static_cast<void>(std::atexit(Thread::awaitAll)); }

void Worker::start(std::function<void()>& job) noexcept {
  thread_->job = &job;
  thread_->error = nullptr;
  thread_->set(kBusy);
}

bool Worker::isBusy() const noexcept {
  return thread_->state.load(std::memory_order_acquire) == kBusy;
}

void Worker::settle() const noexcept { thread_->waitWhile(kBusy); }

void Worker::wait() {
  settle();
  if (thread_->error) std::rethrow_exception(std::exchange(thread_->error, nullptr));
}

bool Worker::isHere() const noexcept { return thread_->process == processId(); }

}  // namespace lbvh
