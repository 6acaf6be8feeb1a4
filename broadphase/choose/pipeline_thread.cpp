// SPDX-License-Identifier: Zlib
#include "broadphase/choose/pipeline_thread.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "broadphase/core/view_of.h"

namespace lbvh {

PipelineThread::PipelineThread(Make make) : make_(std::move(make)) {
  start([this] {
    made_ = make_();
    isMade_ = true;
  });
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
  start([this] {
    made_.pipeline.reset();
    forgetCopies();
    bytes_ = 0;
  });
}

void PipelineThread::start(std::function<void()> job) {
  job_ = std::move(job);
  isAwaited_ = true;
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
  start([this] { stepOnCopies(); });
}

void PipelineThread::stepOnCopies() {
  const auto millisecondsSince = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  Trial trial{served_.number, {0, served_.ms}, pairs_.size(), std::nullopt, false};
  try {
    StepStats stats;  // not read: a trial is timed as a whole
    made_.pipeline->step({viewOf(boxes_), viewOf(filters_), {}, maxPairs_}, stats);
    trial.figures.ms = millisecondsSince(copied_);
    const View<const Pair> found = made_.pipeline->pairs();
    trial.agrees = std::equal(found.begin(), found.end(), pairs_.begin(), pairs_.end());
    trial.found = found.size();
  } catch (const std::length_error&) {
    trial.agrees = false;  // too many pairs, but not in the caller's step
  }
  countBytes();
  trial.figures.costMs = millisecondsSince(began_);
  trial_ = trial;
}

void PipelineThread::forgetCopies() {
  boxes_ = std::vector<Aabb>();
  filters_ = std::vector<Filter>();
  pairs_ = std::vector<Pair>();
}

void PipelineThread::countBytes() {
  bytes_ = made_.pipeline->memoryBytes() + boxes_.capacity() * sizeof(Aabb) +
           filters_.capacity() * sizeof(Filter) + pairs_.capacity() * sizeof(Pair);
}

}  // namespace lbvh
