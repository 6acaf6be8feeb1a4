// SPDX-License-Identifier: Zlib
// Runs a pipeline on its own thread, which makes, uses and destroys the pipeline. So a caller need
// not wait while the pipeline is made or tried. A driver keeps a state for each thread (device,
// last error, capture mode). So a pipeline cannot change the state of a caller's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broadphase/choose/space_chooser.h"
#include "broadphase/choose/worker.h"
#include "broadphase/core/pipeline.h"

namespace lbvh {

/// The step that a trial repeats, with the result that the caller got.
struct ServedStep {
  std::uint64_t number;
  double ms;
  View<const Pair> pairs;
};

struct Trial {
  std::uint64_t step;
  TrialFigures figures;
  std::size_t served;                ///< number of pairs of the caller's step
  std::optional<std::size_t> found;  ///< number of pairs of the trial; none: more than are allowed
  bool agrees;                       ///< whether the pairs are equal
};

struct NamedPipeline {
  std::unique_ptr<Pipeline> pipeline;
  std::string name;  ///< name of the space, for Stats
};

/// Only one thread at a time may use an instance.
class PipelineThread {
 public:
  using Make = std::function<NamedPipeline()>;

  /// Starts to call `make` on the new thread. @throws std::system_error
  explicit PipelineThread(Make make);
  /// Waits for the running job.
  ~PipelineThread();
  PipelineThread(const PipelineThread&) = delete;
  PipelineThread& operator=(const PipelineThread&) = delete;

  /// False in a child process after fork(). Then nothing can be run, and nothing is destroyed.
  bool isHere() const { return worker_.isHere(); }
  bool isBusy() const { return worker_.isBusy(); }
  bool isMade() const { return isMade_; }
  /// False until await() has been called for the last job, so that no outcome of a job is lost.
  bool isIdle() const { return isHere() && !isAwaited_ && isMade(); }
  /// Whether the pipeline could not be made, or was destroyed. Like isIdle(), false until await().
  bool isEmpty() const { return isHere() && !isAwaited_ && !isMade(); }

  /// Waits until the running job has ended. @throws what the job threw
  void await() {
    isAwaited_ = false;
    worker_.wait();
  }

  // The following may be called only while the thread is idle.

  const std::string& name() const { return made_.name; }

  /// Runs f(pipeline) on the thread and meanwhile() on the caller's thread. Returns when both have
  /// ended. @throws what f throws
  template <class F, class Meanwhile>
  void run(const F& f, const Meanwhile& meanwhile) {
    const auto job = [&] {
      forgetCopies();
      f(*made_.pipeline);
      countBytes();
    };
    worker_.run(job, meanwhile);
  }
  template <class F>
  void run(const F& f) {
    run(f, []() noexcept {});
  }

  /// Starts to destroy the pipeline, and returns at once, because freeing many megabytes takes
  /// time.
  void destroy();

  using Clock = std::chrono::steady_clock;

  /// Starts a trial: copies the input's arrays, starts the step on the copies, and returns. Ignores
  /// `input.removedObjects` and `input.changed`. After the step, compares its pairs with
  /// `served.pairs`.
  /// @param began when the caller began to prepare the trial
  /// @throws std::bad_alloc
  void tryStep(const StepInput& input, const ServedStep& served, Clock::time_point began);
  /// Returns the trial that has ended, if there is one. Returns each trial only once.
  std::optional<Trial> takeTrial() { return std::exchange(trial_, std::nullopt); }

  std::size_t memoryBytes() const { return bytes_; }  ///< may be called at any time

 private:
  void start(std::function<void()> job);
  void stepOnCopies();
  void forgetCopies();
  void countBytes();

  Make make_;
  NamedPipeline made_;
  std::atomic<bool> isMade_{false};
  bool isAwaited_ = false;  ///< await() has not been called since a job was started
  std::vector<Aabb> boxes_;
  std::vector<Filter> filters_;
  std::vector<Pair> pairs_;  ///< pairs of the step that the trial repeats
  std::uint64_t maxPairs_ = 0;
  ServedStep served_{};
  Clock::time_point began_, copied_;
  std::optional<Trial> trial_;
  std::atomic<std::size_t> bytes_{0};
  std::function<void()> job_;
  Worker worker_;  ///< the last member, because its thread uses the others
};

}  // namespace lbvh
