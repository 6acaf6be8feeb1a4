// SPDX-License-Identifier: Zlib
// Shared by the parts of cuda_stress: how long a part runs, its outcome, and the work that disturbs
// it.
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
#include "support.h"

namespace lbvh::stress {

/// Uniform boxes. With `stretched`, one box lies so far away that codes of 30 bits are too coarse,
/// and codes of 63 bits are used. But it is near enough that a search with 30 bits is not much
/// slower.
inline test::Boxes uniformBoxes(std::size_t n, bool stretched, test::Random& random) {
  test::Boxes boxes = test::boxSets()[0].make(n, random);
  if (stretched) boxes.back() = {{2500, 0, 0}, {2501, 1, 1}};
  return boxes;
}

struct Load {
  std::vector<std::size_t> sizes;  ///< number of boxes of each set
  long rounds = 0;                 ///< maximum number of rounds of each part
  double seconds = 0;              ///< maximum time of each part, without its preparation
  bool spoils = false;             ///< whether to flip a bit in the third result of each part
};

struct Outcome {
  long rounds = 0;
  long different = 0;  ///< number of rounds whose result differed from the host's
  /// Number of rounds that the host finished, because the GPU refused them.
  long onHost = 0;
  std::string complaint;    ///< the first difference, or why the GPU first refused
  std::string disturbance;  ///< which other work ran
};

/// Hands out the rounds of a part to its threads, until the maximum number or time is reached.
class Rounds {
 public:
  explicit Rounds(const Load& load) : load_(load), begin_(Clock::now()) {}

  /// Whether there is another round. If so, sets `spoil` to whether a bit of its result must be
  /// flipped.
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

/// During its lifetime, kernels on a separate stream read and write all words of a memory block,
/// again and again.
class MemoryHog {
 public:
  explicit MemoryHog(std::size_t bytes);
  ~MemoryHog();
  /// Stops the kernels.
  /// @return the number of passes over the memory
  /// @throws SpaceError if a call failed
  long stop();

 private:
  void run();

  const std::size_t bytes_;
  std::atomic<bool> isOver_{false};
  long passes_ = 0;
  std::string error_;
  std::thread thread_;  ///< the last member, because it uses the other members
};

/// Calls cudaDeviceSynchronize, for files that are not compiled by a CUDA compiler.
/// @return whether it succeeded
bool synchroniseDevice();

Outcome stressDeviceFinders(const Load& load);
Outcome stressFinders(const Load& load);
Outcome stressThreads(const Load& load);

}  // namespace lbvh::stress
