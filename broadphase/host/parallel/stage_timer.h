// SPDX-License-Identifier: Zlib
// Adds the wall-clock time of a scope to a stage's milliseconds, unless timing is off.
#pragma once

#include <chrono>

namespace lbvh {

class StageTimer {
 public:
  explicit StageTimer(double& ms, bool runs = true)
      : ms_(runs ? &ms : nullptr), start_(runs ? Clock::now() : Clock::time_point()) {}
  ~StageTimer() {
    if (ms_ == nullptr) return;
    *ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* const ms_;
  Clock::time_point start_;
};

}  // namespace lbvh
