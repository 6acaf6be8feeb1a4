// A pipeline on the GPU that finishes a step on the host when the GPU fails. Whatever the GPU does,
// the pairs and the delta are those of an undisturbed step. Knows no CUDA: a space that fails
// throws SpaceError.
#pragma once

#include <memory>
#include <string>

#include "broadphase/pipelines/pair_mirror.h"
#include "broadphase/pipelines/pipeline.h"

namespace lbvh {

class FallbackPipeline final : public Pipeline {
 public:
  /// @param name of the GPU, for Stats
  FallbackPipeline(std::unique_ptr<Pipeline> gpu, std::unique_ptr<Pipeline> host, std::string name);

  void step(const StepInput& input, StepStats& stats) override;
  void setPreviousPairs(View<const Pair> pairs) override;
  View<const Pair> pairs() const override { return mirror_.pairs(); }
  View<const Pair> added() const override { return last_->added(); }
  View<const Pair> removed() const override { return last_->removed(); }

  /// Trees for queries are the host's, built when asked for.
  void buildTree(View<const Aabb> boxes, StepStats& stats) override;
  Tree tree() const override { return host_->tree(); }
  PackedScene packed() const override { return last_->packed(); }

  std::size_t memoryBytes() const override;
  const SpaceInfo* info() const override { return &info_; }

 private:
  static constexpr int kMostFailures = 3;  // in a row; then the GPU is left alone

  bool stepOnGpu(const StepInput& input, StepStats& stats);
  void stepOnHost(const StepInput& input, StepStats& stats);

  std::unique_ptr<Pipeline> gpu_, host_;
  const std::string name_;
  const Pipeline* last_;     ///< where the last step was finished
  bool gpuIsBehind_ = true;  ///< it does not have the pairs of the last step
  int failures_ = 0;
  mutable PairMirror mirror_;
  SpaceInfo info_;
};

}  // namespace lbvh
