// Wall-clock time of a scope, added to a stage's milliseconds.
#pragma once

#include <chrono>

namespace lbvh {

class StageTimer {
 public:
  explicit StageTimer(double& ms) : ms_(ms), start_(Clock::now()) {}
  ~StageTimer() { ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& ms_;
  Clock::time_point start_;
};

}  // namespace lbvh
