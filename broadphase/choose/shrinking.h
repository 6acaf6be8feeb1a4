// SPDX-License-Identifier: Zlib
// Frees memory after most boxes were removed. The buffers of a pipeline only grow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "broadphase/core/pipeline.h"

namespace lbvh {

/// Makes a new pipeline when two consecutive steps have far fewer boxes than an earlier step.
class ShrinkingPipeline final : public Pipeline {
 public:
  using Make = std::function<std::unique_ptr<Pipeline>()>;

  explicit ShrinkingPipeline(Make make) : make_(std::move(make)), pipeline_(make_()) {}

  void step(const StepInput& input, StepStats& stats) override {
    const std::size_t boxes = input.boxes.size();
    if (kMaxRatio * std::max(last_, boxes) + kExtraBoxes < most_) makeAgain();
    most_ = std::max(most_, boxes);
    pipeline_->step(input, stats);
    last_ = boxes;
  }

  void rest() noexcept override { pipeline_->rest(); }
  void setPreviousPairs(View<const Pair> pairs) override { pipeline_->setPreviousPairs(pairs); }
  View<const Pair> pairs() override { return pipeline_->pairs(); }
  View<const Pair> added() const override { return pipeline_->added(); }
  View<const Pair> removed() const override { return pipeline_->removed(); }
  const PackedBoxes* packed() const override { return pipeline_->packed(); }
  const SpaceInfo* info() const override { return pipeline_->info(); }
  std::size_t memoryBytes() const override { return pipeline_->memoryBytes(); }

 private:
  /// A pipeline is replaced if one of its steps had more than kMaxRatio * n + kExtraBoxes boxes.
  /// Here n is the number of boxes of the last step or of the next one, whichever is larger.
  static constexpr std::size_t kMaxRatio = 8, kExtraBoxes = 256;

  /// If memory runs out, the old pipeline stays.
  void makeAgain() noexcept try {
    auto made = make_();
    made->setPreviousPairs(pipeline_->pairs());
    pipeline_ = std::move(made);
    most_ = last_;
  } catch (const std::exception&) {
    return;
  }

  const Make make_;
  std::unique_ptr<Pipeline> pipeline_;
  std::size_t last_ = 0;  ///< number of boxes in the last step
  std::size_t most_ = 0;  ///< largest number of boxes in a step of the pipeline
};

}  // namespace lbvh
