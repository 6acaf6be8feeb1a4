// SPDX-License-Identifier: Zlib
#include "broadphase/choose/adaptive.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "broadphase/core/space_error.h"
#include "broadphase/core/view_of.h"

namespace lbvh {
namespace {

using Clock = std::chrono::steady_clock;

// After a trial for which memory ran out, no trial begins for this many steps. Otherwise each step
// would copy its input again.
constexpr std::uint64_t kStepsWithoutTrial = 1024;

constexpr const char* kForked = "a child process after fork() cannot use the GPU";

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Returns the valid pairs of a list with arbitrary contents, sorted and without duplicates.
std::vector<Pair> possible(View<const Pair> list, std::size_t boxes) {
  std::vector<Pair> pairs;
  pairs.reserve(list.size());
  for (const Pair pair : list)
    if (pair.first < pair.second && pair.second < boxes) pairs.push_back(pair);
  if (!std::is_sorted(pairs.begin(), pairs.end())) std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
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
  fetched_.reset();
  ++step_;
  endTrials();
  if (chooser_->wantsGpu()) warmUp();
  const auto begin = Clock::now();
  const bool triesGpu = chooser_->next() == Where::gpu && canUseGpu();
  if (triesGpu && gpuIsBehind_) takeOver();  // the GPU needs the previous pairs from the host
  const StepStats untouched = stats;
  if (!triesGpu || !stepOnGpu(input, stats)) {
    stats = untouched;
    stepOnHost(input, stats);
  }
  // Nothing below may throw, because the step is done.
  if (step_ > 1 && serving_ != served_) ++info_.switches;
  served_ = serving_;
  const double ms = millisecondsSince(begin);
  chooser_->stepped(serving_, {ms, input.boxes.size(), stats.pairs, millisecondsSince(made_)});
  endTrials();  // evaluates a trial that ended during this step, before the next trial begins
  if (serving_ == chooser_->next()) beginTrial(input, ms);
  tell();
}

bool AdaptivePipeline::canUseGpu() const {
  return gpu_ != nullptr && gpu_->isIdle() && !hasFailedForGood_ && !gpuWasWrong &&
         step_ >= retryAt_;
}

/// Runs the step on the GPU's thread. Meanwhile the caller's thread copies the boxes. Threads of
/// the GPU's pipeline help to copy while they wait.
bool AdaptivePipeline::stepOnGpu(const StepInput& input, StepStats& stats) {
  try {
    const View<const Pair> before = gpuIsBehind_ ? host_->pairs() : View<const Pair>{};
    LastScene::Copying copying = lastScene_.prepare(input);
    StepInput shared = input;
    shared.beside = &copying;
    const auto stepThere = [&](Pipeline& gpu) {
      if (gpuIsBehind_) gpu.setPreviousPairs(before);
      gpuIsBehind_ = true;  // in case the step fails
      try {
        gpu.step(shared, stats);
      } catch (const std::length_error&) {
        gpuIsBehind_ = false;  // the GPU has not failed, and still has the previous pairs
        throw;
      }
      added_ = gpu.added();
      removed_ = gpu.removed();
    };
    gpu_->run(stepThere, [&]() noexcept { copying.help(); });
  } catch (const SpaceError& error) {
    failed(error.what(), error.isSticky);
    return false;
  } catch (const std::bad_alloc&) {
    failed("out of memory", false);
    return false;
  }
  lastScene_.keep();
  gpuIsBehind_ = false;
  serving_ = Where::gpu;
  failures_ = 0;
  return true;
}

void AdaptivePipeline::stepOnHost(const StepInput& input, StepStats& stats) {
  added_ = removed_ = {};
  takeOver();
  gpuIsBehind_ = true;
  host_->step(input, stats);
  added_ = host_->added();
  removed_ = host_->removed();
}

/// Gives the host the pairs of the last step. If the GPU found these pairs, they are copied from
/// the GPU. If they are wrong, the changes of the next step correct them. If the GPU has lost them,
/// the host searches for them again.
/// @throws std::bad_alloc, with nothing changed
void AdaptivePipeline::takeOver() {
  if (serving_ == Where::host) return lastScene_.clear();
  if (const View<const Pair>* const last = fetched()) {
    host_->setPreviousPairs(viewOf(possible(*last, lastScene_.get().boxes.size())));
  } else {
    StepStats unread;
    host_->step(lastScene_.get(), unread);
    ++info_.losses;
  }
  serving_ = Where::host;
  gpuIsBehind_ = true;
  lastScene_.clear();  // not needed until a step runs on the GPU again
}

void AdaptivePipeline::setPreviousPairs(View<const Pair> pairs) {
  host_->setPreviousPairs(pairs);
  serving_ = Where::host;
  gpuIsBehind_ = true;
  lastScene_.clear();
  fetched_.reset();
  added_ = removed_ = {};
}

View<const Pair> AdaptivePipeline::pairs() {
  if (serving_ == Where::gpu) {
    if (const View<const Pair>* const there = fetched()) return *there;
    takeOver();
  }
  return host_->pairs();
}

/// The GPU's pairs, copied to the host's memory at most once per step. Null if they cannot be
/// copied.
const View<const Pair>* AdaptivePipeline::fetched() {
  if (fetched_) return &*fetched_;
  if (gpuIsBehind_ || hasFailedForGood_ || !gpu_->isIdle()) return nullptr;
  try {
    View<const Pair> pairs;
    gpu_->run([&](Pipeline& gpu) { pairs = gpu.pairs(); });
    return &fetched_.emplace(pairs);
  } catch (const SpaceError& error) {
    gpuIsBehind_ = true;  // its pairs are lost
    failed(error.what(), error.isSticky);
    return nullptr;
  }
}

const PackedBoxes* AdaptivePipeline::packed() const {
  return served_ == Where::host ? host_->packed() : nullptr;
}

std::size_t AdaptivePipeline::memoryBytes() const {
  return host_->memoryBytes() + lastScene_.memoryBytes() +
         (gpu_ != nullptr ? gpu_->memoryBytes() : 0) +
         (hostTrial_ != nullptr ? hostTrial_->memoryBytes() : 0);
}

void AdaptivePipeline::warmUp() {
  if (gpu_ != nullptr || hasFailedForGood_ || gpuWasWrong || step_ < retryAt_) return;
  try {
    gpu_ = std::make_unique<PipelineThread>(makeGpu_);
  } catch (const std::exception& error) {  // no thread, or no memory
    failed(error.what(), false);
  }
}

void AdaptivePipeline::endTrials() {
  if (gpu_ != nullptr) endTrial(*gpu_, Where::gpu);
  if (gpu_ != nullptr && !gpu_->isHere() && !hasFailedForGood_) failed(kForked, true);
  if (gpu_ != nullptr && gpu_->isEmpty())
    gpu_.reset();
  else if (gpu_ != nullptr && gpu_->isIdle() && gpuWasWrong && serving_ == Where::host)
    gpu_->destroy();
  if (hostTrial_ == nullptr) return;
  endTrial(*hostTrial_, Where::host);
  if (hostTrial_->isEmpty())
    hostTrial_.reset();
  else if (hostTrial_->isIdle() && serving_ == Where::host)
    hostTrial_->destroy();
}

/// Evaluates the thread's job if it has ended.
void AdaptivePipeline::endTrial(PipelineThread& thread, Where where) {
  if (!thread.isHere() || thread.isBusy()) return;
  try {
    thread.await();
    const std::optional<Trial> trial = thread.takeTrial();
    if (!trial) return;
    if (!trial->agrees) return disagreed(where, *trial);
    chooser_->tried(where, trial->figures);
    if (where == Where::gpu) failures_ = 0;
  } catch (const SpaceError& error) {
    failed(error.what(), error.isSticky);
  } catch (const std::exception& error) {  // out of memory
    nextTrial_ = step_ + kStepsWithoutTrial;
    if (where == Where::gpu) failed(error.what(), false);
  }
}

/// Handles a trial whose pairs differ from the step's pairs. Treats the host's pairs as correct.
void AdaptivePipeline::disagreed(Where where, const Trial& trial) noexcept {
  gpuWasWrong = true;
  try {
    const std::string served = std::to_string(trial.served);
    const std::string found = trial.found ? std::to_string(*trial.found) : "too many";
    const bool triedHost = where == Where::host;
    verdict_ = "found wrong pairs in step " + std::to_string(trial.step) + ": " +
               (triedHost ? served : found) + ", but the host found " +
               (triedHost ? found : served);
  } catch (const std::bad_alloc&) {
  }
}

/// Skips the trial if its copies cannot be allocated. The caller waits only while boxes and pairs
/// are copied.
void AdaptivePipeline::beginTrial(const StepInput& input, double servedMs) {
  if (!chooser_->wantsTrial() || gpuWasWrong || step_ < nextTrial_) return;
  const auto began = Clock::now();
  try {
    PipelineThread* const thread = triedThread();
    if (thread == nullptr) return;
    const View<const Pair> ofHost = serving_ == Where::host ? host_->pairs() : View<const Pair>{};
    const View<const Pair>* const pairs = serving_ == Where::host ? &ofHost : fetched();
    if (pairs != nullptr) thread->tryStep(input, {step_, servedMs, *pairs}, began);
  } catch (const std::exception&) {
    nextTrial_ = step_ + kStepsWithoutTrial;
  }
}

/// The thread for a trial: the GPU's if steps run on the host, else the host's. Null while that
/// pipeline is busy or not ready.
PipelineThread* AdaptivePipeline::triedThread() {
  if (serving_ == Where::host) return canUseGpu() ? gpu_.get() : nullptr;
  if (hostTrial_ == nullptr) hostTrial_ = std::make_unique<PipelineThread>(makeHost_);
  return hostTrial_->isIdle() ? hostTrial_.get() : nullptr;
}

void AdaptivePipeline::failed(const char* what, bool forGood) {
  constexpr int kLongestRest = 16;  // 2^16 steps, 18 minutes at 60 steps per second
  failures_ = std::min(failures_ + 1, kLongestRest);
  retryAt_ = step_ + (std::uint64_t{1} << failures_) + 1;
  hasFailedForGood_ = hasFailedForGood_ || forGood;
  try {
    trouble_ = what;
  } catch (const std::bad_alloc&) {
  }
}

/// Updates info_: where the last step ran, and why. If memory runs out, its texts stay unchanged.
void AdaptivePipeline::tell() {
  info_.hostMeanMs = chooser_->meanMs(Where::host);
  info_.gpuMeanMs = chooser_->meanMs(Where::gpu);
  try {
    const bool isOnGpu = serving_ == Where::gpu || (step_ == 0 && canUseGpu());
    info_.backend = isOnGpu ? gpu_->name() : "host";
    const bool isWarmUp = !isOnGpu && gpu_ != nullptr && !gpu_->isMade();
    if (isOnGpu && !trouble_.empty())
      info_.say(chooser_->reason(), "works again after: " + trouble_);
    else if (!isOnGpu && gpuWasWrong)  // said after the host has corrected the pairs
      info_.say(SpaceReason::failed,
                verdict_.empty() ? "the GPU found wrong pairs for another finder of this process"
                                 : verdict_);
    else if (!isOnGpu && (hasFailedForGood_ || failures_ > 0))
      info_.say(SpaceReason::failed, trouble_);
    else if (isWarmUp)
      info_.say(SpaceReason::warmUp, "the GPU is being warmed up");
    else
      info_.say(chooser_->reason(), chooser_->why());
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace lbvh
