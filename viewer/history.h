// SPDX-License-Identifier: Zlib
// What the graphs show: the figures of the last steps, oldest first. Does not draw.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"
#include "drawing.h"
#include "scenes/world.h"

/// One step's figures.
struct StepRecord {
  StepTimes times;
  lbvh::StepStats stages;  ///< all 0 unless the broad phase is ours
  int pairs = 0;
  std::size_t added = 0, removed = 0;
  std::string swappedTo;  ///< the broad phase that this step was the first of, or empty
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

/// How far the axis of a graph must reach.
/// @param cutsSpikes at most to two and a half times the third quartile: on a busy machine single
///   steps are so slow that nothing else would be seen
double reachOf(const History& history, const std::vector<Series>& series, bool cutsSpikes);

/// Rounds up to 1, 2 or 5 times a power of ten: where an axis ends.
double niceCeiling(double value);
