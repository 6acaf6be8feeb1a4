// SPDX-License-Identifier: Zlib
#include "broadphase/choose/space_chooser.h"

#include <algorithm>
#include <utility>

namespace lbvh {
namespace {

constexpr int kMinLongSteps = 6;  // after this many long steps in a row the GPU is tried
constexpr int kMaxCounted = 64;   // after this many compared steps the chosen space is kept
constexpr double kMargin = 1.05;  // the other space must be faster by this factor
// By chance, hitches may make the sums differ by the mean time of this many steps. While steps run
// on the GPU, the host is tried rarely, so a wrong choice of the GPU lasts long. Therefore the GPU
// must be faster in two comparisons in a row.
constexpr double kHitchesForGpu = 4, kHitchesForHost = 3, kHitchesToStay = 1;
constexpr double kCheckShare = 99;          // time on the GPU / time for trials of the host
constexpr std::uint64_t kMinPause = 64;     // minimum number of steps between two series
constexpr std::uint64_t kSeriesShare = 24;  // steps between series / steps in series

// A GPU's pipeline allocates memory in its first steps, then records a graph for each of its pair
// buffers. A GPU that was idle also needs some milliseconds to raise its clock.
constexpr int kWarmUps = 6;
constexpr double kWarmMs = 5;

bool differBy(double factor, double a, double b) { return a > factor * b || b > factor * a; }

}  // namespace

void FasterSpace::stepped(Where where, const StepFigures& figures) noexcept {
  ++step_;
  if (where != serving_) return;  // the chosen space has failed or is not ready
  now_ = figures;
  const bool isChange = step_ >= nextChange_ && hasChanged();
  if (serving_ == Where::gpu) {
    if (isChange && now_.atMs >= nextCheckAtOnceMs_) checkAtOnce();
    return;
  }
  longSteps_ = figures.ms < leastMs_ ? 0 : std::min(longSteps_ + 1, kMinLongSteps);
  if (longSteps_ < kMinLongSteps) return;  // short steps gain nothing on a GPU
  isWorthAGpu_ = true;
  if (isInSeries_ || (step_ < nextSeries_ && !isChange)) return;
  isInSeries_ = true;
  isByChange_ = step_ < nextSeries_;
  seriesBegan_ = step_;
  warmUps_ = 0;
  warmMs_ = 0;
}

/// Requests a trial of the host at once. Discards the counted steps, because the scene has changed.
void FasterSpace::checkAtOnce() {
  endSeries();
  nextCheckMs_ = 0;
  isByChange_ = true;
}

/// Whether the number of boxes or of pairs has changed by a factor of four. Adding 64 to both
/// numbers makes changes of small numbers irrelevant.
bool FasterSpace::hasChanged() const {
  const auto differ = [](std::size_t a, std::size_t b) {
    return differBy(4, static_cast<double>(a) + 64, static_cast<double>(b) + 64);
  };
  return differ(now_.boxes, decidedFor_.boxes) || differ(now_.pairs, decidedFor_.pairs);
}

void FasterSpace::tried(Where where, const TrialFigures& figures) noexcept {
  if (where == serving_) return;
  if (where == Where::host) {
    nextCheckMs_ = now_.atMs + kCheckShare * figures.costMs;
    if (std::exchange(isByChange_, false)) nextCheckAtOnceMs_ = nextCheckMs_;
  } else if (!isInSeries_ || !isWarm(figures)) {
    return;
  }
  count(figures);
}

bool FasterSpace::isWarm(const TrialFigures& figures) {
  if (warmUps_ >= kWarmUps && warmMs_ >= kWarmMs) return true;
  ++warmUps_;
  warmMs_ += figures.ms;
  return false;
}

void FasterSpace::count(const TrialFigures& figures) {
  ++counted_;
  triedMs_ += figures.ms;
  servedMs_ += figures.servedMs;
  means_[serving_ == Where::gpu] = servedMs_ / counted_;
  means_[serving_ == Where::host] = triedMs_ / counted_;
  const bool forGpu = serving_ == Where::host;
  const double doubt = (forGpu ? kHitchesForGpu : kHitchesForHost) / counted_;
  if (servedMs_ > (kMargin + doubt) * triedMs_) {
    if (forGpu && !std::exchange(isToBeConfirmed_, true)) return forget();
    switchOver();
  } else if (triedMs_ > (1 + kHitchesToStay / counted_) * servedMs_ || counted_ == kMaxCounted) {
    endSeries();
  }
}

void FasterSpace::forget() {
  counted_ = 0;
  triedMs_ = servedMs_ = 0;
}

/// Ends the comparison. The pauses between series grow with the number of steps. So all series
/// together cost only a small share of the whole time.
void FasterSpace::endSeries() {
  forget();
  isToBeConfirmed_ = false;
  decidedFor_ = now_;
  nextChange_ = step_ + kMinPause;
  if (!std::exchange(isInSeries_, false)) return;
  wasCompared_ = true;
  const std::uint64_t length = step_ - seriesBegan_;
  nextSeries_ = step_ + std::max({kMinPause, step_ / kSeriesShare, 2 * length, pause_});
  if (std::exchange(isByChange_, false))
    nextChange_ = step_ + std::max(kMinPause, kSeriesShare * length);
}

void FasterSpace::switchOver() {
  serving_ = otherThan(serving_);
  endSeries();
  if (serving_ == Where::gpu) {
    nextCheckMs_ = 0;
    return;
  }
  // The GPU was slower in steps than in its trials, so the next series comes later.
  pause_ = std::max(kMinPause, 2 * pause_);
  nextSeries_ = step_ + pause_;
}

const char* FasterSpace::why() const noexcept {
  if (serving_ == Where::gpu) return "faster than the host";
  if (wasCompared_) return "faster than the GPU";
  return isWorthAGpu_ ? "the GPU is being tried"
                      : "steps take less time than the launches on a GPU";
}

}  // namespace lbvh
