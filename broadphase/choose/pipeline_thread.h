// SPDX-License-Identifier: Zlib
// A pipeline on a thread of its own, which makes, uses and destroys it. So no caller waits while it
// is made or tried, and what a driver keeps for each thread (device, last error, capture mode) is
// never the caller's.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broadphase/choose/worker.h"
#include "broadphase/core/pipeline.h"

namespace lbvh {

struct NamedPipeline {
  std::unique_ptr<Pipeline> pipeline;
  std::string name;  ///< of the space, for Stats
};

/// Used by one thread at a time.
class PipelineThread {
 public:
  using Make = std::function<NamedPipeline()>;

  /// Begins to call `make` on the new thread. @throws std::system_error
  explicit PipelineThread(Make make);
  /// Waits for what runs.
  ~PipelineThread();
  PipelineThread(const PipelineThread&) = delete;
  PipelineThread& operator=(const PipelineThread&) = delete;

  /// False in a child after fork(): then nothing can be run, and nothing is destroyed.
  bool isHere() const { return worker_.isHere(); }
  bool isBusy() const { return worker_.isBusy(); }
  bool isMade() const { return isMade_; }
  /// Ready to run something.
  bool isIdle() const { return isHere() && !isBusy() && isMade(); }
  /// The pipeline could not be made, or was destroyed.
  bool isEmpty() const { return isHere() && !isBusy() && !isMade(); }

  /// Until what runs has ended. @throws what it threw
  void await() { worker_.wait(); }

  // While it is idle:

  const std::string& name() const { return made_.name; }

  /// Runs f(pipeline) and waits. @throws what f throws
  template <class F>
  void run(const F& f) {
    worker_.run([&] {
      f(*made_.pipeline);
      bytes_ = made_.pipeline->memoryBytes();
    });
  }

  /// Begins to destroy the pipeline, and returns: memory of many megabytes takes its time.
  void destroy();

  /// Begins the step on copies of its arrays, and returns. Objects do not count as removed.
  /// @throws std::bad_alloc
  void tryStep(const StepInput& input);
  /// Milliseconds of the trial that has ended, from its begin; once.
  std::optional<double> takeTrial() { return std::exchange(trialMs_, std::nullopt); }

  std::size_t memoryBytes() const { return bytes_; }  ///< at any time

 private:
  using Clock = std::chrono::steady_clock;
  void stepOnCopies();

  Make make_;
  NamedPipeline made_;
  std::atomic<bool> isMade_{false};
  std::vector<Aabb> boxes_;
  std::vector<Filter> filters_;
  std::uint64_t maxPairs_ = 0;
  Clock::time_point begin_;
  std::optional<double> trialMs_;
  std::atomic<std::size_t> bytes_{0};
  std::function<void()> job_;
  Worker worker_;  ///< last: its thread uses the rest
};

}  // namespace lbvh
