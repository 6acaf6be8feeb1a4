#include "broadphase/pipelines/fallback.h"

#include <utility>

#include "broadphase/exec/space.h"

namespace lbvh {

FallbackPipeline::FallbackPipeline(std::unique_ptr<Pipeline> gpu, std::unique_ptr<Pipeline> host,
                                   std::string name)
    : gpu_(std::move(gpu)),
      host_(std::move(host)),
      name_(std::move(name)),
      last_(gpu_.get()),
      info_{name_, "this machine has a GPU"} {}

void FallbackPipeline::step(const StepInput& input, StepStats& stats) {
  if (failures_ < kMostFailures && stepOnGpu(input, stats)) return;
  stats = StepStats{};
  stepOnHost(input, stats);
}

bool FallbackPipeline::stepOnGpu(const StepInput& input, StepStats& stats) {
  try {
    if (gpuIsBehind_) gpu_->setPreviousPairs(mirror_.pairs());
    gpuIsBehind_ = true;  // until the mirror has what the GPU has
    try {
      gpu_->step(input, stats);
    } catch (const std::length_error&) {
      gpuIsBehind_ = false;  // too many pairs are no failure of the GPU: it kept the old ones
      throw;
    }
    SpaceInfo info = info_;
    if (failures_ > 0) info = {name_, "works again after: " + info_.reason};
    mirror_.log(gpu_->added(), gpu_->removed(), input.removedObjects);
    // The step is done: nothing throws from here on.
    info_ = std::move(info);
    gpuIsBehind_ = false;
    last_ = gpu_.get();
    failures_ = 0;
    return true;
  } catch (const SpaceError& error) {
    failures_ = error.isSticky ? kMostFailures : failures_ + 1;
    info_ = {"host", error.what()};
    return false;
  }
}

void FallbackPipeline::stepOnHost(const StepInput& input, StepStats& stats) {
  if (last_ != host_.get()) host_->setPreviousPairs(mirror_.pairs());
  last_ = gpu_.get();  // until the mirror has what the host has
  host_->step(input, stats);
  mirror_.assign(host_->pairs());
  last_ = host_.get();
}

void FallbackPipeline::setPreviousPairs(View<const Pair> pairs) {
  mirror_.assign(pairs);
  gpuIsBehind_ = true;
  host_->setPreviousPairs(pairs);
  last_ = host_.get();
}

void FallbackPipeline::buildTree(View<const Aabb> boxes, StepStats& stats) {
  host_->buildTree(boxes, stats);
}

std::size_t FallbackPipeline::memoryBytes() const {
  return gpu_->memoryBytes() + host_->memoryBytes();
}

}  // namespace lbvh
