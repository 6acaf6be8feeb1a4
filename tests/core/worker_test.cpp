// SPDX-License-Identifier: Zlib
// Tests Worker, a thread that runs one job at a time.
#include "broadphase/choose/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "broadphase/core/test_hooks.h"
#include "gate.h"

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace lbvh {
namespace {

void sleepAWhile() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

TEST(Worker, RunsJobsInOrderOnOneOtherThread) {
  Worker worker;
  std::vector<int> order;
  std::thread::id first, second;
  worker.run([&] { order.push_back(1), first = std::this_thread::get_id(); });
  worker.run([&] { order.push_back(2), second = std::this_thread::get_id(); });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
}

TEST(Worker, RethrowsAJobsExceptionOnce) {
  Worker worker;
  EXPECT_THROW(worker.run([] { throw std::length_error("x"); }), std::length_error);
  worker.wait();
  bool hasRun = false;
  worker.run([&] { hasRun = true; });
  EXPECT_TRUE(hasRun);
}

/// Forces workers to spin, or not to spin, during its lifetime.
struct Spinning {
  explicit Spinning(TestHooks::Spin spin) { testHooks.spin = spin; }
  ~Spinning() { testHooks.spin = TestHooks::Spin::automatic; }
};

// A worker must find a job while it spins, while it falls asleep, and while it sleeps.
TEST(Worker, NoticesEachJobAndItsEndWhetherItSpinsOrSleeps) {
  for (const auto spin : {TestHooks::Spin::always, TestHooks::Spin::never}) {
    const Spinning spinning(spin);
    Worker worker;
    int done = 0;
    for (int round = 0; round < 600; ++round) {
      const auto wait = [](int us) {
        if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
      };
      worker.run([&] {
        wait(round % 3 * 40);
        ++done;
      });
      ASSERT_EQ(done, round + 1);
      ASSERT_FALSE(worker.isBusy());
      wait(round % 4 * 30);
    }
  }
}

TEST(Worker, CallerMayDoOtherWorkDuringTheJob) {
  Worker worker;
  test::Gate mayEnd(false);
  bool hasEnded = false;
  const auto job = [&] {
    mayEnd.pass();
    hasEnded = true;
  };
  // If mayEnd were opened only after the job, the job would wait for ever.
  worker.run(job, [&]() noexcept { mayEnd.open(); });
  EXPECT_TRUE(hasEnded);
}

TEST(Worker, StartReturnsAtOnceAndDestructorWaits) {
  test::Gate mayEnd(false);
  std::atomic<bool> hasEnded{false};
  std::function<void()> job = [&] {
    mayEnd.pass();
    sleepAWhile();
    hasEnded = true;
  };
  {
    Worker worker;
    worker.start(job);
    EXPECT_TRUE(worker.isBusy());
    mayEnd.open();
  }
  EXPECT_TRUE(hasEnded);
}

#if defined(__unix__)
// ThreadSanitizer does not support fork() in a process with several threads.
#if !defined(__SANITIZE_THREAD__)

/// The exit status of a child that runs f and then exits.
template <class F>
int statusOfChild(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    std::exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Worker, DoesNotExistInAChildProcess) {
  test::Gate mayEnd(false);
  std::function<void()> job = [&] { mayEnd.pass(); };
  Worker worker;
  worker.start(job);
  EXPECT_TRUE(worker.isHere());
  EXPECT_EQ(statusOfChild([&] {
              if (worker.isHere()) std::_Exit(1);
              worker.~Worker();  // must not wait for its thread, which only the parent has
            }),
            7);
  mayEnd.open();
}

TEST(Worker, ProcessExitWaitsForTheJob) {
  EXPECT_EQ(statusOfChild([] {
              auto* const forgotten = new Worker;
              static std::function<void()> job = [] {
                sleepAWhile();
                std::_Exit(42);
              };
              forgotten->start(job);
            }),
            42)
      << "the process did not wait for the job";
}

#endif
#endif

}  // namespace
}  // namespace lbvh
