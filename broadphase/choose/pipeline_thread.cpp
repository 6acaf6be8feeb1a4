// SPDX-License-Identifier: Zlib
#include "broadphase/choose/pipeline_thread.h"

#include <algorithm>
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
  if (!isHere()) {  // the pipeline belongs to the thread, which is in the parent process
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

void PipelineThread::tryStep(const StepInput& input, const ServedStep& served,
                             Clock::time_point began) {
  boxes_.assign(input.boxes.begin(), input.boxes.end());
  filters_.assign(input.filters.begin(), input.filters.end());
  pairs_.assign(served.pairs.begin(), served.pairs.end());
  maxPairs_ = input.maxPairs;
  served_ = served;
  began_ = began;
  copied_ = Clock::now();
  job_ = [this] { stepOnCopies(); };
  worker_.start(job_);
}

void PipelineThread::stepOnCopies() {
  StepStats stats;  // not read: a trial is timed as a whole
  made_.pipeline->step(
      {{boxes_.data(), boxes_.size()}, {filters_.data(), filters_.size()}, {}, maxPairs_}, stats);
  const auto millisecondsSince = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  TrialFigures figures{millisecondsSince(copied_), served_.ms};
  const View<const Pair> found = made_.pipeline->pairs();
  const bool agrees = std::equal(found.begin(), found.end(), pairs_.begin(), pairs_.end());
  bytes_ = made_.pipeline->memoryBytes();
  figures.costMs = millisecondsSince(began_);
  trial_ = {served_.number, figures, pairs_.size(), found.size(), agrees};
}

}  // namespace lbvh
