// SPDX-License-Identifier: Zlib
// Measures the CPU time of the calling thread. The thread spent the rest of the wall-clock
// time waiting.
#pragma once

#include "support/system.h"

class ThreadStopwatch {
 public:
  /// Must be called by the thread that made the stopwatch.
  double milliseconds() const { return threadMilliseconds() - start_; }

 private:
  double start_ = threadMilliseconds();
};
