// SPDX-License-Identifier: Zlib
// Chooses the space that runs the steps: the host's cores or the GPU. The chosen space "serves".
// From the times of steps and of trials, the chooser decides where the next step runs, and when
// the other space is worth a trial. It runs nothing itself and reads no clock, so tests can pass
// any sequence of times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/options.h"

namespace lbvh {

enum class Where { host, gpu };

constexpr Where otherThan(Where where) { return where == Where::host ? Where::gpu : Where::host; }

/// The figures of a finished step.
struct StepFigures {
  double ms = 0;  ///< duration of the whole step for its caller
  std::size_t boxes = 0, pairs = 0;
  double atMs = 0;  ///< time at its end, on a clock with any starting point
};

/// The figures of a step that both spaces have run, one for the caller and the other as a trial.
struct TrialFigures {
  double ms = 0;        ///< how long a caller would have waited for the trial
  double servedMs = 0;  ///< duration of the step on the space that serves
  double costMs = 0;    ///< duration of the whole trial: copies, the step, the comparison
};

class SpaceChooser {
 public:
  virtual ~SpaceChooser() = default;

  /// Where the next step should run. If this space fails or is not ready, the step runs on the
  /// other space.
  virtual Where next() const = 0;
  /// Whether a GPU may be worth using. If so, it is warmed up.
  virtual bool wantsGpu() const = 0;
  /// Whether the other space should repeat the step that has just ended, on a copy of its input.
  virtual bool wantsTrial() const = 0;

  virtual void stepped(Where where, const StepFigures& figures) noexcept = 0;
  /// @param where the space on which the trial ran
  virtual void tried(Where where, const TrialFigures& figures) noexcept = 0;

  /// The mean time of the counted steps on that space; 0 if there were none.
  virtual double meanMs(Where where) const noexcept = 0;
  /// The reason for next().
  virtual SpaceReason reason() const noexcept = 0;
  /// The reason for next(), in words.
  virtual const char* why() const noexcept = 0;
};

class AlwaysGpu final : public SpaceChooser {
 public:
  Where next() const override { return Where::gpu; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return false; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, const TrialFigures&) noexcept override {}
  double meanMs(Where) const noexcept override { return 0; }
  SpaceReason reason() const noexcept override { return SpaceReason::requested; }
  const char* why() const noexcept override { return "requested"; }
};

/// Measures both spaces, and chooses the faster one.
///
/// Both spaces run the same steps, one for the caller and the other as a trial. Their times are
/// summed, hitches included, and the sums are compared. The fewer steps have been counted, the more
/// the sums must differ.
///
/// The host serves first. Meanwhile the GPU is tried in series of steps. The first trials of a
/// series are ignored, until the GPU has worked for some milliseconds. While the GPU serves, the
/// trials of the host take a hundredth of the whole time. The host is tried at once when the number
/// of boxes or pairs has changed by a factor of four. If this happens often, these trials take
/// another hundredth.
class FasterSpace final : public SpaceChooser {
 public:
  /// @param leastMs steps that take less time than this on the host gain nothing on a GPU, where a
  ///   launch and a wait alone take longer
  explicit FasterSpace(double leastMs = 0.1) : leastMs_(leastMs) {}

  Where next() const override { return serving_; }
  bool wantsGpu() const override { return isWorthAGpu_; }
  bool wantsTrial() const override {
    return serving_ == Where::host ? isInSeries_ : now_.atMs >= nextCheckMs_;
  }
  void stepped(Where where, const StepFigures& figures) noexcept override;
  void tried(Where where, const TrialFigures& figures) noexcept override;
  double meanMs(Where where) const noexcept override { return means_[where == Where::gpu]; }
  SpaceReason reason() const noexcept override { return SpaceReason::faster; }
  const char* why() const noexcept override;

 private:
  bool hasChanged() const;
  void checkAtOnce();
  bool isWarm(const TrialFigures& figures);
  void count(const TrialFigures& figures);
  void forget();
  void endSeries();
  void switchOver();

  const double leastMs_;
  Where serving_ = Where::host;
  bool isWorthAGpu_ = false;
  std::uint64_t step_ = 0;
  int longSteps_ = 0;             ///< number of consecutive steps of leastMs or more
  StepFigures now_, decidedFor_;  ///< the last step, and the step of the last decision
  /// Whether the series or the next check is early, because the number of boxes or pairs changed.
  bool isByChange_ = false;

  // Sums over the trials since the last decision, and over the same steps on the space that serves.
  int counted_ = 0;
  double triedMs_ = 0, servedMs_ = 0;
  double means_[2] = {0, 0};

  // Used while steps run on the host.
  bool isInSeries_ = false;
  int warmUps_ = 0;               ///< number of ignored trials of this series
  double warmMs_ = 0;             ///< how long the ignored trials took
  bool isToBeConfirmed_ = false;  ///< whether one comparison has shown that the GPU is faster
  bool wasCompared_ = false;
  std::uint64_t seriesBegan_ = 0;
  /// The first step that may begin a series although the numbers of boxes and pairs have hardly
  /// changed, and the first step in which hasChanged() is called.
  std::uint64_t nextSeries_ = 0, nextChange_ = 0;
  std::uint64_t pause_ = 0;  ///< between two series, in steps

  // Used while steps run on the GPU. The host is next tried at nextCheckMs_. From
  // nextCheckAtOnceMs_ on, it is tried at once if the number of boxes or pairs has changed.
  double nextCheckMs_ = 0, nextCheckAtOnceMs_ = 0;
};

}  // namespace lbvh
