// SPDX-License-Identifier: Zlib
// Runs each step on the host or on the GPU. A chooser decides where. If the GPU fails, the host
// runs the step. The pairs and deltas are the same on both. Uses no CUDA.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "broadphase/choose/last_scene.h"
#include "broadphase/choose/pipeline_thread.h"
#include "broadphase/choose/space_chooser.h"
#include "broadphase/core/pipeline.h"

namespace lbvh {

/// Whether a GPU has found pairs that differ from those of the host. If so, no later step of this
/// process runs on a GPU.
inline std::atomic<bool> gpuWasWrong{false};

/// A pipeline whose chooser decides for each step whether it runs on the host or on the GPU. No
/// step waits for the GPU's warm-up or for a trial. In a trial the pipeline that is not in use
/// repeats a step on a copy of the boxes. Then the pairs of the trial and of the step are compared.
/// If they differ, no GPU is used any more. After one, two, three ... failures in a row, the GPU is
/// not used for 2, 4, 8 ... steps. After a sticky failure the GPU is not used again.
class AdaptivePipeline final : public Pipeline {
 public:
  using Make = PipelineThread::Make;

  /// @param makeHost makes the pipeline for trials of the host while steps run on the GPU
  AdaptivePipeline(std::unique_ptr<Pipeline> host, Make makeHost, Make makeGpu,
                   std::unique_ptr<SpaceChooser> chooser);

  /// Makes the GPU's pipeline, and waits until it is ready. @throws what makeGpu throws
  void awaitGpu();

  void step(const StepInput& input, StepStats& stats) override;
  void setPreviousPairs(View<const Pair> pairs) override;
  View<const Pair> pairs() override;
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  const PackedBoxes* packed() const override;
  void rest() noexcept override {
    if (served_ == Where::host) host_->rest();
  }

  std::size_t memoryBytes() const override;
  const SpaceInfo* info() const override { return &info_; }

 private:
  bool canUseGpu() const;
  bool stepOnGpu(const StepInput& input, StepStats& stats);
  void stepOnHost(const StepInput& input, StepStats& stats);
  void takeOver();
  const View<const Pair>* fetched();

  void warmUp();
  void endTrials();
  void endTrial(PipelineThread& thread, Where where);
  void beginTrial(const StepInput& input, double servedMs);
  void disagreed(Where where, const Trial& trial) noexcept;
  PipelineThread* triedThread();

  void failed(const char* what, bool forGood);
  void tell();

  const std::unique_ptr<Pipeline> host_;
  const Make makeHost_, makeGpu_;
  const std::unique_ptr<SpaceChooser> chooser_;
  std::unique_ptr<PipelineThread> gpu_;        ///< null until the chooser wants it
  std::unique_ptr<PipelineThread> hostTrial_;  ///< for trials of the host; null if there are none

  Where serving_ = Where::host;  ///< which pipeline has the pairs of the last step
  Where served_ = Where::host;   ///< which pipeline ran the last step
  /// Whether the GPU may lack the pairs of the last step.
  bool gpuIsBehind_ = true;
  LastScene lastScene_;                      ///< used while steps run on the GPU
  std::optional<View<const Pair>> fetched_;  ///< the GPU's pairs, if they have been copied
  View<const Pair> added_, removed_;

  const PipelineThread::Clock::time_point made_ = PipelineThread::Clock::now();
  /// The current step, and the first step that may use the GPU after a failure.
  std::uint64_t step_ = 0, retryAt_ = 0;
  std::uint64_t nextTrial_ = 0;  ///< after memory ran out for a trial: the first step with trials
  int failures_ = 0;             ///< failures in a row
  bool hasFailedForGood_ = false;
  std::string trouble_;  ///< message of the last failure
  std::string verdict_;  ///< message about wrong pairs of this finder's GPU; empty if none
  SpaceInfo info_;
};

}  // namespace lbvh
