// SPDX-License-Identifier: Zlib
// Finds the slow steps of a broad phase: percentiles, the longest steps, and their reasons. Does
// not measure times, and does not print.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Facts about the broad phase in one step.
struct StepFacts {
  double ms = 0;             ///< wall-clock time
  double cpuMs = 0;          ///< CPU time of the broad phase's thread
  bool grew = false;         ///< whether the broad phase's memory grew in the step
  std::size_t objects = 0;   ///< number of objects; 0: not known
  std::size_t searched = 0;  ///< objects whose pairs were searched for
};

struct LongStep {
  int step = 0;  ///< number of the step; the first is 1
  double ms = 0;
  double around = 0;  ///< median of the 15 steps around it, itself included
  std::string
      reason;  ///< growth, full_search, waiting, first; several joined by +; - if none is known
};

struct Tails {
  double median = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
  std::vector<LongStep> longest;  ///< up to three, the longest first
};

/// Reasons for a slow step:
/// - growth: memory grew in this step.
/// - full_search: the step searched for the pairs of all objects. Most steps around it searched for
///   the pairs of fewer objects.
/// - waiting: the thread waited for a core, other threads, a GPU or a page. The wait was at least
///   half of the excess over the surrounding steps' median, and at least a tenth of the step.
/// - first: it is the first step, and no other reason is known.
Tails tailsOf(const std::vector<StepFacts>& steps);

/// The ratio of a step's time to LongStep::around; 0 if the latter is 0.
double timesAround(const LongStep& step);
