// SPDX-License-Identifier: Zlib
// A pipeline on the host or the GPU, step by step: where a chooser says, and on the host when the
// GPU fails. Wherever steps run, the pairs and deltas are the same. Knows no CUDA: a space that
// fails throws SpaceError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broadphase/choose/pair_mirror.h"
#include "broadphase/choose/pipeline_thread.h"
#include "broadphase/choose/space_chooser.h"
#include "broadphase/core/pipeline.h"

namespace lbvh {

/// No caller waits for the GPU's warm-up, nor for a trial, which runs on a copy of the boxes and
/// whose pairs are dropped. After a failure the GPU rests for 2, 4, 8 ... steps; after a sticky
/// one for good.
class AdaptivePipeline final : public Pipeline {
 public:
  using Make = PipelineThread::Make;

  /// @param makeHost for trials of the host while the GPU serves
  AdaptivePipeline(std::unique_ptr<Pipeline> host, Make makeHost, Make makeGpu,
                   std::unique_ptr<SpaceChooser> chooser);

  /// Makes the GPU's pipeline, and waits until it is there. @throws what makeGpu throws
  void awaitGpu();

  void step(const StepInput& input, StepStats& stats) override;
  void setPreviousPairs(View<const Pair> pairs) override;
  View<const Pair> pairs() override;
  View<const Pair> added() const override { return added_; }
  View<const Pair> removed() const override { return removed_; }

  /// Trees for queries are the host's, built when asked for.
  void buildTree(View<const Aabb> boxes) override;
  Tree tree() const override { return host_->tree(); }
  PackedScene packed() const override;
  void rest() noexcept override {
    if (serving_ == Where::host) host_->rest();
  }

  std::size_t memoryBytes() const override;
  const SpaceInfo* info() const override { return &info_; }

 private:
  bool canUseGpu() const;
  bool stepOnGpu(const StepInput& input, StepStats& stats);
  void stepOnHost(const StepInput& input, StepStats& stats);

  void warmUp();
  void endTrials();
  void endTrial(PipelineThread& thread, Where where);
  void beginTrial(const StepInput& input);
  PipelineThread* triedThread();

  void failed(const char* what, bool forGood);
  void tell();

  const std::unique_ptr<Pipeline> host_;
  const Make makeHost_, makeGpu_;
  const std::unique_ptr<SpaceChooser> chooser_;
  std::unique_ptr<PipelineThread> gpu_;        ///< null until it is wanted
  std::unique_ptr<PipelineThread> hostTrial_;  ///< while the host is tried

  Where serving_ = Where::host;  ///< who has done the last step
  bool gpuIsBehind_ = true;      ///< it does not have the pairs of the last step
  mutable PairMirror mirror_;    ///< of the GPU's pairs, while it serves
  View<const Pair> added_, removed_;

  std::uint64_t step_ = 0, retryAt_ = 0;  ///< the GPU rests before that step
  int failures_ = 0;                      ///< in a row
  bool hasFailedForGood_ = false;
  std::string trouble_;  ///< the last failure's words
  SpaceInfo info_;
};

}  // namespace lbvh
