// SPDX-License-Identifier: Zlib
// Measures the calls that pass through the preloaded library, to our broad phases and to Bullet's.
// The environment variable GPULBVH_MEASURE names a CSV file; without it nothing is measured. Each
// process that makes a broad phase adds a line every two seconds and one at its end. At its end it
// also prints the totals on stderr.
#pragma once

#include "bullets.h"

namespace gpulbvhDbvt {

extern constinit bool measuring;  // set before main

void countBroadphase(bool ours);
void countObject(int change);

/// Times one setAabb in 61. The other calls are only counted, because reading the clock would cost
/// as much as the call.
class UpdateTimer {
 public:
  UpdateTimer() { begun = measuring ? begin() : 0; }
  ~UpdateTimer() {
    if (begun != 0) end(begun);
  }
  UpdateTimer(const UpdateTimer&) = delete;
  UpdateTimer& operator=(const UpdateTimer&) = delete;

 private:
  static long long begin();
  static void end(long long begun);
  long long begun;
};

/// Times a step.
class StepTimer {
 public:
  StepTimer() { begun = measuring ? begin() : 0; }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  /// @param cache the btOverlappingPairCache of the broad phase, whose pairs are counted
  void end(const btOverlappingPairCache* cache) const {
    if (begun != 0) end(begun, cache);
  }

 private:
  static long long begin();
  static void end(long long begun, const btOverlappingPairCache* cache);
  long long begun;
};

}  // namespace gpulbvhDbvt
