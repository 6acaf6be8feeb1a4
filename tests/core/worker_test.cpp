// SPDX-License-Identifier: Zlib
// The thread that does one job at a time.
#include "broadphase/choose/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

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

TEST(Worker, PassesOnWhatAJobThrowsOnce) {
  Worker worker;
  EXPECT_THROW(worker.run([] { throw std::length_error("x"); }), std::length_error);
  worker.wait();
  bool hasRun = false;
  worker.run([&] { hasRun = true; });
  EXPECT_TRUE(hasRun);
}

TEST(Worker, StartsWithoutWaitingAndItsEndWaits) {
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
// ThreadSanitizer does not follow a process with threads through fork().
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

TEST(Worker, StaysBehindInAChildProcess) {
  test::Gate mayEnd(false);
  std::function<void()> job = [&] { mayEnd.pass(); };
  Worker worker;
  worker.start(job);
  EXPECT_TRUE(worker.isHere());
  EXPECT_EQ(statusOfChild([&] {
              if (worker.isHere()) std::_Exit(1);
              worker.~Worker();  // neither waits nor ends what is not there
            }),
            7);
  mayEnd.open();
}

TEST(Worker, AProcessEndsWhenTheJobHasEnded) {
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
