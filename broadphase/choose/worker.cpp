// SPDX-License-Identifier: Zlib
#include "broadphase/choose/worker.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "broadphase/core/compiler.h"
#include "broadphase/core/test_hooks.h"

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

// Waking a sleeping thread takes 5 to 50 us, as long as a small step on a GPU. So a waiting thread
// first spins. If it waits for a job, it spins about as long as a wake-up takes. If it waits for
// the end of a job, it spins about as long as a step of some 100,000 boxes takes. With at most two
// processors it does not spin, because it might take the only free processor from the thread that
// it waits for, or from the program. If a thread spins for the whole time in vain, steps take
// longer or no processor is free. So its next few waits do not spin.
constexpr std::chrono::microseconds kLook[] = {std::chrono::microseconds(40),    // by state: kIdle,
                                               std::chrono::microseconds(500)};  // kBusy
constexpr int kBlindWaits = 15;

bool maySpin() noexcept {
  if (testHooks.spin != TestHooks::Spin::automatic)
    return testHooks.spin == TestHooks::Spin::always;
  static const bool hasMore = std::thread::hardware_concurrency() > 2;
  return hasMore;
}

}  // namespace

struct Worker::Thread {
  // A lock, because std::atomic's wait() misses notifications if there is no futex (libstdc++ 12).
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::atomic<int> state{kIdle};
  std::function<void()>* job = nullptr;
  std::exception_ptr error;
  const long process = processId();
  const bool spins = maySpin();
  /// By state: how many of the next waits do not spin.
  mutable std::atomic<int> blindWaits[2] = {0, 0};
  std::thread thread;
  Thread* next = nullptr;  ///< next thread in the list of all threads

  void loop() noexcept;
  bool endsSoon(State s) const noexcept {
    std::atomic<int>& blind = blindWaits[s];
    if (const int rest = blind.load(std::memory_order_relaxed); rest > 0) {
      blind.store(rest - 1, std::memory_order_relaxed);
      return false;
    }
    const auto end = std::chrono::steady_clock::now() + kLook[s];
    do
      for (int polls = 0; polls < 32; ++polls) {
        if (state.load(std::memory_order_acquire) != s) return true;
        relax();
      }
    while (std::chrono::steady_clock::now() < end);
    blind.store(kBlindWaits, std::memory_order_relaxed);
    return false;
  }
  void waitWhile(State s) const noexcept {
    if (spins && endsSoon(s)) return;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return state.load(std::memory_order_acquire) != s; });
  }
  void set(State s) noexcept {
    const std::lock_guard<std::mutex> lock(mutex);
    state.store(s, std::memory_order_release);
    changed.notify_all();
  }

  // All threads of this process, so that the process can wait for them at exit. Never destroyed,
  // because a Worker in a static of the program may be destroyed later.
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

// Waits for all running jobs. Does nothing if the lock is taken: in a child process after fork(),
// the thread that took the lock may not exist.
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
