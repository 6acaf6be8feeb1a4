// SPDX-License-Identifier: Zlib
#include "broadphase/choose/adaptive.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "broadphase/core/space_error.h"

namespace lbvh {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kForked = "a child process after fork() cannot use the GPU";

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

AdaptivePipeline::AdaptivePipeline(std::unique_ptr<Pipeline> host, Make makeHost, Make makeGpu,
                                   std::unique_ptr<SpaceChooser> chooser)
    : host_(std::move(host)),
      makeHost_(std::move(makeHost)),
      makeGpu_(std::move(makeGpu)),
      chooser_(std::move(chooser)) {
  tell();
}

void AdaptivePipeline::awaitGpu() {
  gpu_ = std::make_unique<PipelineThread>(makeGpu_);
  gpu_->await();
  tell();
}

void AdaptivePipeline::step(const StepInput& input, StepStats& stats) {
  added_ = removed_ = {};
  ++step_;
  endTrials();
  if (chooser_->wantsGpu()) warmUp();
  const auto begin = Clock::now();
  const bool triesGpu = chooser_->next() == Where::gpu && canUseGpu();
  const Where before = serving_;
  if (!triesGpu || !stepOnGpu(input, stats)) {
    if (triesGpu) stats = StepStats{};
    stepOnHost(input, stats);
  }
  // The step is done: nothing throws from here on.
  if (step_ > 1 && serving_ != before) ++info_.switches;
  chooser_->stepped(serving_, {millisecondsSince(begin), input.boxes.size, stats.pairs});
  if (serving_ == chooser_->next()) beginTrial(input);
  tell();
}

bool AdaptivePipeline::canUseGpu() const {
  return gpu_ != nullptr && gpu_->isIdle() && !hasFailedForGood_ && step_ >= retryAt_;
}

bool AdaptivePipeline::stepOnGpu(const StepInput& input, StepStats& stats) {
  try {
    if (gpuIsBehind_ && serving_ == Where::host) mirror_.assign(host_->pairs());
    const View<const Pair> before = gpuIsBehind_ ? mirror_.pairs() : View<const Pair>{};
    gpu_->run([&](Pipeline& gpu) {
      if (gpuIsBehind_) gpu.setPreviousPairs(before);
      gpuIsBehind_ = true;  // until the mirror has what the GPU has
      try {
        gpu.step(input, stats);
      } catch (const std::length_error&) {
        gpuIsBehind_ = false;  // too many pairs are no failure of the GPU: it kept the old ones
        throw;
      }
      added_ = gpu.added();
      removed_ = gpu.removed();
    });
    mirror_.log(added_, removed_, input.removedObjects);
  } catch (const SpaceError& error) {
    failed(error.what(), error.isSticky);
    return false;
  } catch (const std::bad_alloc&) {
    failed("out of memory", false);
    return false;
  }
  gpuIsBehind_ = false;
  serving_ = Where::gpu;
  failures_ = 0;
  return true;
}

void AdaptivePipeline::stepOnHost(const StepInput& input, StepStats& stats) {
  added_ = removed_ = {};
  if (serving_ == Where::gpu) host_->setPreviousPairs(mirror_.pairs());
  serving_ = Where::host;
  gpuIsBehind_ = true;
  mirror_ = PairMirror();  // of no use until the GPU serves again
  host_->step(input, stats);
  added_ = host_->added();
  removed_ = host_->removed();
}

void AdaptivePipeline::setPreviousPairs(View<const Pair> pairs) {
  host_->setPreviousPairs(pairs);
  serving_ = Where::host;
  gpuIsBehind_ = true;
  added_ = removed_ = {};
}

View<const Pair> AdaptivePipeline::pairs() {
  return serving_ == Where::host ? host_->pairs() : mirror_.pairs();
}

void AdaptivePipeline::buildTree(View<const Aabb> boxes) { host_->buildTree(boxes); }

PackedScene AdaptivePipeline::packed() const {
  return serving_ == Where::host ? host_->packed() : PackedScene{};
}

std::size_t AdaptivePipeline::memoryBytes() const {
  return host_->memoryBytes() + mirror_.memoryBytes() +
         (gpu_ != nullptr ? gpu_->memoryBytes() : 0) +
         (hostTrial_ != nullptr ? hostTrial_->memoryBytes() : 0);
}

void AdaptivePipeline::warmUp() {
  if (gpu_ != nullptr || hasFailedForGood_ || step_ < retryAt_) return;
  try {
    gpu_ = std::make_unique<PipelineThread>(makeGpu_);
  } catch (const std::exception& error) {  // no thread, or no memory
    failed(error.what(), false);
  }
}

void AdaptivePipeline::endTrials() {
  if (gpu_ != nullptr) endTrial(*gpu_, Where::gpu);
  if (gpu_ != nullptr && !gpu_->isHere() && !hasFailedForGood_) failed(kForked, true);
  if (gpu_ != nullptr && gpu_->isEmpty()) gpu_.reset();
  if (hostTrial_ == nullptr) return;
  endTrial(*hostTrial_, Where::host);
  if (hostTrial_->isEmpty())
    hostTrial_.reset();
  else if (hostTrial_->isIdle() && (serving_ == Where::host || !chooser_->wantsTrial()))
    hostTrial_->destroy();
}

/// Looks at what the thread has done, if it has come to its end.
void AdaptivePipeline::endTrial(PipelineThread& thread, Where where) {
  if (!thread.isHere() || thread.isBusy()) return;
  try {
    thread.await();
    const std::optional<double> ms = thread.takeTrial();
    if (ms) chooser_->tried(where, *ms);
    if (ms && where == Where::gpu) failures_ = 0;
  } catch (const std::length_error&) {
    return;  // too many pairs: the step itself has said so
  } catch (const SpaceError& error) {
    failed(error.what(), error.isSticky);
  } catch (const std::exception& error) {
    if (where == Where::gpu) failed(error.what(), false);
  }
}

/// Not without memory for the copies: a trial is a luxury.
void AdaptivePipeline::beginTrial(const StepInput& input) {
  if (!chooser_->wantsTrial()) return;
  try {
    PipelineThread* const thread = triedThread();
    if (thread == nullptr) return;
    thread->tryStep(input);
  } catch (const std::exception&) {
    return;
  }
}

/// Of the space that does not serve; null while it is not there or busy.
PipelineThread* AdaptivePipeline::triedThread() {
  if (serving_ == Where::host) return canUseGpu() ? gpu_.get() : nullptr;
  if (hostTrial_ == nullptr) hostTrial_ = std::make_unique<PipelineThread>(makeHost_);
  return hostTrial_->isIdle() ? hostTrial_.get() : nullptr;
}

void AdaptivePipeline::failed(const char* what, bool forGood) {
  constexpr int kLongestRest = 16;  // 2^16 steps: a quarter of an hour
  failures_ = std::min(failures_ + 1, kLongestRest);
  retryAt_ = step_ + (std::uint64_t{1} << failures_) + 1;
  hasFailedForGood_ = hasFailedForGood_ || forGood;
  try {
    trouble_ = what;
  } catch (const std::bad_alloc&) {
  }
}

/// Where the last step ran, and why. Without memory the words stay as they were.
void AdaptivePipeline::tell() {
  info_.hostMedianMs = chooser_->medianMs(Where::host);
  info_.gpuMedianMs = chooser_->medianMs(Where::gpu);
  try {
    const bool isOnGpu = serving_ == Where::gpu || (step_ == 0 && canUseGpu());
    const bool isResting = hasFailedForGood_ || failures_ > 0;
    info_.backend = isOnGpu ? gpu_->name() : "host";
    if (isOnGpu && !trouble_.empty())
      info_.reason = "works again after: " + trouble_;
    else if (!isOnGpu && isResting)
      info_.reason = trouble_;
    else if (!isOnGpu && gpu_ != nullptr && !gpu_->isMade())
      info_.reason = "the GPU is being warmed up";
    else
      info_.reason = chooser_->why();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace lbvh
