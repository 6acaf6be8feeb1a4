// SPDX-License-Identifier: Zlib
// Keeps the measured values of the last steps, the oldest first, for the graphs. Does not draw.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"
#include "drawing.h"
#include "scenes/world.h"

/// The measured values of one step.
struct StepRecord {
  StepTimes times;
  lbvh::StepStats stages;  ///< all 0 if the broad phase is not ours
  int pairs = 0;
  std::size_t added = 0, removed = 0;
  std::string swappedTo;  ///< in the first step after a swap: the new broad phase's name
};

class History {
 public:
  static constexpr std::size_t kSteps = 240;

  void add(StepRecord record) {
    if (steps_.size() == kSteps) steps_.pop_front();
    steps_.push_back(std::move(record));
  }
  void clear() { steps_.clear(); }
  std::size_t size() const { return steps_.size(); }
  const StepRecord& operator[](std::size_t i) const { return steps_[i]; }
  const StepRecord* last() const { return steps_.empty() ? nullptr : &steps_.back(); }

 private:
  std::deque<StepRecord> steps_;
};

/// One curve of a graph.
struct Series {
  const char* name;
  Colour colour;
  std::function<double(const StepRecord&)> valueOf;
};

/// The value that a graph's axis must at least reach.
/// @param cutsSpikes whether to limit the value to 2.5 times the third quartile of the steps'
///   values. On a busy machine, individual steps can be so slow that they would flatten the rest
///   of the curve
double reachOf(const History& history, const std::vector<Series>& series, bool cutsSpikes);

/// Rounds up to 1, 2 or 5 times a power of ten, for the end of an axis.
double niceCeiling(double value);
