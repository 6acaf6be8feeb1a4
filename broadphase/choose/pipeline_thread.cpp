// SPDX-License-Identifier: Zlib
#include "broadphase/choose/pipeline_thread.h"

#include <utility>

namespace lbvh {

PipelineThread::PipelineThread(Make make) : make_(std::move(make)) {
  job_ = [this] {
    made_ = make_();
    isMade_ = true;
  };
  worker_.start(job_);
}

PipelineThread::~PipelineThread() {
  if (!isHere()) {  // what it holds belongs to the thread, which stayed with the parent process
    [[maybe_unused]] const Pipeline* const left = made_.pipeline.release();
    return;
  }
  worker_.settle();
  worker_.run([&] { made_.pipeline.reset(); });
}

void PipelineThread::destroy() {
  isMade_ = false;
  job_ = [this] { made_.pipeline.reset(); };
  worker_.start(job_);
}

void PipelineThread::tryStep(const StepInput& input) {
  boxes_.assign(input.boxes.begin(), input.boxes.end());
  filters_.assign(input.filters.begin(), input.filters.end());
  maxPairs_ = input.maxPairs;
  begin_ = Clock::now();
  job_ = [this] { stepOnCopies(); };
  worker_.start(job_);
}

void PipelineThread::stepOnCopies() {
  StepStats unused;
  made_.pipeline->step(
      {{boxes_.data(), boxes_.size()}, {filters_.data(), filters_.size()}, {}, maxPairs_}, unused);
  bytes_ = made_.pipeline->memoryBytes();
  trialMs_ = std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
}

}  // namespace lbvh
