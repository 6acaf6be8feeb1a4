// SPDX-License-Identifier: Zlib
// The time that the calling thread spends on a core. What is missing to the wall clock it waited.
#pragma once

#include "support/system.h"

class ThreadStopwatch {
 public:
  /// To be asked by the thread that made it.
  double milliseconds() const { return threadMilliseconds() - start_; }

 private:
  double start_ = threadMilliseconds();
};
