// SPDX-License-Identifier: Zlib
// What the parts of cuda_stress share: how long a part runs, what came of it, and the disturbers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "broadphase/types.h"

namespace lbvh::stress {

struct Load {
  std::vector<std::size_t> sizes;  ///< boxes in a set
  long rounds = 0;                 ///< of a part
  double seconds = 0;              ///< of a part, at most
  bool spoils = false;             ///< the third result of each part gets a wrong bit
};

struct Outcome {
  long rounds = 0;
  long different = 0;       ///< rounds whose result was not the host's
  long onHost = 0;          ///< rounds that the GPU refused, so that the host finished them
  std::string complaint;    ///< about the first difference, or the first refusal
  std::string disturbance;  ///< what else ran, in words
};

/// Deals out the rounds of a part to its threads until they, or the time, are over.
class Rounds {
 public:
  explicit Rounds(const Load& load) : load_(load), begin_(Clock::now()) {}

  /// Whether there is another round. `spoil` says whether its result is to be spoilt.
  bool next(bool& spoil) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> passed = Clock::now() - begin_;
    if (outcome_.rounds >= load_.rounds || passed.count() > load_.seconds) return false;
    spoil = load_.spoils && outcome_.rounds == 2;
    ++outcome_.rounds;
    return true;
  }

  void differs(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (outcome_.different++ == 0) outcome_.complaint = what;
  }
  void endedOnHost(const std::string& why) {
    const std::lock_guard lock(mutex_);
    ++outcome_.onHost;
    if (outcome_.complaint.empty()) outcome_.complaint = why;
  }

  Outcome outcome(std::string disturbance) {
    const std::lock_guard lock(mutex_);
    outcome_.disturbance = std::move(disturbance);
    return outcome_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Load load_;
  const Clock::time_point begin_;
  std::mutex mutex_;
  Outcome outcome_;
};

/// While it lives, kernels on a stream of their own move memory as fast as the device can.
class MemoryHog {
 public:
  explicit MemoryHog(std::size_t bytes);
  ~MemoryHog();
  /// Stops it. @return how often it went through its memory @throws SpaceError if a call failed
  long stop();

 private:
  void run();

  const std::size_t bytes_;
  std::atomic<bool> isOver_{false};
  long passes_ = 0;
  std::string error_;
  std::thread thread_;  ///< last, so that it sees the others
};

/// cudaDeviceSynchronize, for code that no CUDA compiler sees. @return whether it succeeded
bool synchroniseDevice();

Outcome stressDeviceFinders(const Load& load);
Outcome stressFinders(const Load& load);
Outcome stressThreads(const Load& load);

}  // namespace lbvh::stress
