// SPDX-License-Identifier: Zlib
#include "broadphase/choose/space_chooser.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lbvh {
namespace {

constexpr std::size_t kFewSteps = 6;  // whose median says where the times are now
constexpr std::size_t kLeastTrials = 3;
constexpr double kMargin = 0.05;

// Soon after the first, second and later switches, so that a scene on the edge does not swing.
constexpr double kMarginsSoonAgain[] = {0.3, 1, 3};
constexpr std::uint64_t kSoonAgain[] = {64, 1024, 8192};  // steps

// A pipeline on a GPU allocates in its first steps, then records one for each of its buffers.
constexpr int kFirstTrials = 6, kLaterTrials = 2;
constexpr int kSettling = 2;  // steps after a switch: they also hand the pairs over

bool differBy(double factor, double a, double b) { return a > factor * b || b > factor * a; }

double middle(double* begin, std::size_t n) {
  if (n == 0) return 0;
  std::nth_element(begin, begin + n / 2, begin + n);
  return begin[n / 2];
}

}  // namespace

void TimeWindow::add(double ms) {
  values_[next_] = ms;
  next_ = (next_ + 1) % kRoom;
  size_ = std::min(size_ + 1, kRoom);
}

double TimeWindow::median(std::size_t last) const {
  double newest[kRoom];
  const std::size_t n = std::min(last, size_);
  for (std::size_t i = 0; i < n; ++i) newest[i] = values_[(next_ + kRoom - 1 - i) % kRoom];
  return middle(newest, n);
}

double TimeWindow::noise() const {
  const double centre = median();
  if (centre <= 0) return 0;
  double distances[kRoom];
  for (std::size_t i = 0; i < size_; ++i) distances[i] = std::abs(values_[i] - centre);
  return 1.48 * middle(distances, size_) / centre;
}

void FasterSpace::stepped(Where where, const StepFigures& figures) noexcept {
  ++step_;
  if (where != serving_) return;  // in place of the other, which has failed or is not there
  now_ = figures;
  if (trialMs_ > 0 && uncounted_ > 0) {
    --uncounted_;
    return;
  }
  times(where).add(figures.ms);
  if (times(where).size() < kFewSteps) return;
  if (step_ % 8 == 0) medians_[where == Where::gpu] = times(where).median();
  if (trialMs_ > 0) checkSwitch();
  if (serving_ == Where::host && figures.ms < leastMs_) return;  // small worlds pay for nothing
  if (times(serving_).median(kFewSteps) >= leastMs_) isWorthAGpu_ = true;
  if (!isInSeries_ && isSeriesDue()) beginSeries();
}

/// A GPU cannot be faster than its launches. The host may always be.
bool FasterSpace::isSeriesDue() const {
  if (trialMs_ > 0) return false;
  if (serving_ == Where::host && times(serving_).median(kFewSteps) < leastMs_) return false;
  return step_ >= nextSeries_ || (step_ >= nextChange_ && hasChanged());
}

bool FasterSpace::hasChanged() const {
  const auto count = [](std::size_t n) { return static_cast<double>(n) + 64; };
  return differBy(1.5, count(now_.boxes), count(compared_.boxes)) ||
         differBy(2, count(now_.pairs), count(compared_.pairs)) ||
         differBy(1.4, times(serving_).median(kFewSteps), compared_.ms);
}

void FasterSpace::beginSeries() {
  const Where tried = otherThan(serving_);
  bool& wasTried = wasTried_[tried == Where::gpu];
  isInSeries_ = true;
  times(tried).clear();
  double& realByTrial = realByTrial_[tried == Where::gpu];
  realByTrial = std::pow(realByTrial, 0.99);  // what a switch showed is forgotten in time
  uncounted_ = std::exchange(wasTried, true) ? kLaterTrials : kFirstTrials;
  // Ever more rarely, if only the times or the scene change and never who is faster.
  changeGap_ = step_ >= nextSeries_ ? std::max<std::uint64_t>(changeGap_ / 2, 16)
                                    : std::min<std::uint64_t>(changeGap_ * 2, 512);
}

void FasterSpace::tried(Where where, double ms) noexcept {
  if (!isInSeries_ || where == serving_) return;
  if (uncounted_ > 0) {
    --uncounted_;
    return;
  }
  times(where).add(ms * realByTrial_[where == Where::gpu]);
  medians_[where == Where::gpu] = times(where).median();
  if (times(where).size() >= kLeastTrials) compare();
}

/// How far the ratio of the two medians can be off, by their standard errors.
double FasterSpace::doubt() const {
  const auto &a = times_[0], &b = times_[1];
  const double perSample = 1 / static_cast<double>(a.size()) + 1 / static_cast<double>(b.size());
  return 2 * 1.25 * std::max(a.noise(), b.noise()) * std::sqrt(perSample);
}

void FasterSpace::compare() {
  const TimeWindow& trials = times(otherThan(serving_));
  const bool isSoon = step_ < nextSwitch_;
  const double margin = isSoon ? kMarginsSoonAgain[switches_ - 1] : kMargin;
  const double gain = times(serving_).median() / trials.median() - 1;
  if (gain > margin + doubt())
    switchOver();
  else if (gain < margin - doubt() || trials.size() == TimeWindow::kRoom)
    endSeries();
}

void FasterSpace::endSeries() {
  isInSeries_ = false;
  uncounted_ = 0;
  compared_ = now_;
  compared_.ms = times(serving_).median(kFewSteps);
  nextSeries_ = step_ + std::clamp<std::uint64_t>(step_ / 24, 64, 4096);
  nextChange_ = step_ + changeGap_;
}

void FasterSpace::serve(Where where) {
  serving_ = where;
  nextSwitch_ = step_ + kSoonAgain[std::min(switches_, 2)];
  switches_ = std::min(switches_ + 1, 3);
}

void FasterSpace::switchOver() {
  const Where winner = otherThan(serving_);
  trialMs_ = times(winner).median();
  endSeries();
  times(winner).clear();
  uncounted_ = kSettling;
  serve(winner);
}

/// Whether steps are as fast as the trials were: if not, back, and those trials count less.
void FasterSpace::checkSwitch() {
  double& realByTrial = realByTrial_[serving_ == Where::gpu];
  const double real = times(serving_).median() / trialMs_;
  realByTrial = std::clamp(realByTrial * real, 0.5, 2.0);
  trialMs_ = 0;
  compared_.ms = times(serving_).median(kFewSteps);
  const Where before = otherThan(serving_);
  if (times(serving_).median() < times(before).median() * (1 + kMargin + doubt())) return;
  serve(before);
  compared_.ms = times(before).median(kFewSteps);
}

const char* FasterSpace::why() const noexcept {
  if (serving_ == Where::gpu) return "faster than the host";
  if (times(Where::gpu).size() >= kLeastTrials) return "faster than the GPU";
  return isWorthAGpu_ ? "the GPU is being tried" : "a GPU needs longer to begin";
}

}  // namespace lbvh
