// The time that the calling thread spends on a core. What is missing to the wall clock it waited.
// POSIX.
#pragma once

#include <ctime>

class ThreadStopwatch {
 public:
  /// To be asked by the thread that made it.
  double milliseconds() const { return now() - start_; }

 private:
  static double now() {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
  }

  double start_ = now();
};
