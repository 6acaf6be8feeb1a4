// SPDX-License-Identifier: Zlib
// Which space serves: the host's cores or the GPU. Fed with the times of steps and of trials, it
// says where the next step belongs, and when the other space is worth a trial. Runs nothing itself
// and reads no clock, so it can be fed with any trace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbvh {

enum class Where { host, gpu };

constexpr Where otherThan(Where where) { return where == Where::host ? Where::gpu : Where::host; }

/// What is known of a step when it is over.
struct StepFigures {
  double ms = 0;  ///< the whole step, as its caller feels it
  std::size_t boxes = 0, pairs = 0;
};

class SpaceChooser {
 public:
  virtual ~SpaceChooser() = default;

  /// Where the next step belongs. It runs elsewhere while that space fails or is not there.
  virtual Where next() const = 0;
  /// Whether a GPU may be worth having: then it is warmed up.
  virtual bool wantsGpu() const = 0;
  /// Whether the other space should do the step that is just over, too, on a copy.
  virtual bool wantsTrial() const = 0;

  virtual void stepped(Where where, const StepFigures& figures) noexcept = 0;
  /// @param ms of a trial, as a caller would have felt it
  virtual void tried(Where where, double ms) noexcept = 0;

  /// Of the last steps or trials there, some steps old; 0 if there were none.
  virtual double medianMs(Where where) const noexcept = 0;
  /// Why next() is what it is.
  virtual const char* why() const noexcept = 0;
};

/// The GPU, whatever it takes.
class AlwaysGpu final : public SpaceChooser {
 public:
  Where next() const override { return Where::gpu; }
  bool wantsGpu() const override { return true; }
  bool wantsTrial() const override { return false; }
  void stepped(Where, const StepFigures&) noexcept override {}
  void tried(Where, double) noexcept override {}
  double medianMs(Where) const noexcept override { return 0; }
  const char* why() const noexcept override { return "asked for"; }
};

/// The last few times on one space, in memory of fixed size.
class TimeWindow {
 public:
  static constexpr std::size_t kRoom = 24;

  void clear() { size_ = next_ = 0; }
  void add(double ms);
  std::size_t size() const { return size_; }

  /// Of the newest `last`; 0 if there are none.
  double median(std::size_t last = kRoom) const;
  /// How far a time lies from the median, as a share of it: 1.48 times the median distance, which
  /// is the standard deviation if times are normally distributed. Spikes do not count.
  double noise() const;

 private:
  double values_[kRoom] = {};
  std::size_t size_ = 0, next_ = 0;
};

/// The faster one, by measuring.
///
/// The host serves first. The other space is tried in series of steps. It takes over if its median
/// is lower by more than a twentieth, and by more than the noise explains. Series come when the
/// scene or the times have changed much, and else in intervals that grow with the number of steps:
/// what is lost because a trial came late stays a small share of all.
class FasterSpace final : public SpaceChooser {
 public:
  /// @param leastMs a step on the host below this is faster than any GPU's: a launch and a wait
  ///   take longer
  explicit FasterSpace(double leastMs = 0.1) : leastMs_(leastMs) {}

  Where next() const override { return serving_; }
  bool wantsGpu() const override { return isWorthAGpu_; }
  bool wantsTrial() const override { return isInSeries_; }
  void stepped(Where where, const StepFigures& figures) noexcept override;
  void tried(Where where, double ms) noexcept override;
  double medianMs(Where where) const noexcept override { return medians_[where == Where::gpu]; }
  const char* why() const noexcept override;

 private:
  TimeWindow& times(Where where) { return times_[where == Where::gpu]; }
  const TimeWindow& times(Where where) const { return times_[where == Where::gpu]; }

  bool isSeriesDue() const;
  bool hasChanged() const;
  void beginSeries();
  void compare();
  void endSeries();
  void serve(Where where);
  void switchOver();
  void checkSwitch();
  double doubt() const;

  const double leastMs_;
  Where serving_ = Where::host;
  bool isWorthAGpu_ = false;
  double medians_[2] = {0, 0};
  TimeWindow times_[2];             ///< steps of the space that serves, trials of the other
  double realByTrial_[2] = {1, 1};  ///< a step's time by a trial's, as switches have shown

  std::uint64_t step_ = 0;
  StepFigures now_, compared_;  ///< the last step; and, with a median, the last of a series
  bool isInSeries_ = false;
  bool wasTried_[2] = {false, false};
  int uncounted_ = 0;  ///< trials or steps of a space that has just begun: they are slower
  std::uint64_t nextSeries_ = 0, nextChange_ = 0, nextSwitch_ = 0;  ///< not before these steps
  std::uint64_t changeGap_ = 16;
  int switches_ = 0;    ///< counted up to 3: the next one needs more steps, or better reasons
  double trialMs_ = 0;  ///< what the last switch was based on; 0 once it was checked
};

}  // namespace lbvh
