// SPDX-License-Identifier: Zlib
// How long the slow steps of a broad phase take, and why: percentiles and the longest steps.
// Neither times nor prints.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// What is known of the broad phase of one step.
struct StepFacts {
  double ms = 0;             ///< wall clock
  double cpuMs = 0;          ///< of them, those that its thread spent on a core
  bool grew = false;         ///< it holds more memory than before the step
  std::size_t objects = 0;   ///< 0: it does not tell
  std::size_t searched = 0;  ///< objects whose pairs were searched for
};

/// A step that took longer than others.
struct LongStep {
  int step = 0;  ///< the first is 1
  double ms = 0;
  double around = 0;   ///< median of the 15 steps around it, itself included
  std::string reason;  ///< growth, full_search, waiting, first; several with a +; - for none known
};

struct Tails {
  double median = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
  std::vector<LongStep> longest;  ///< up to three, the longest first
};

/// The reasons:
/// - growth: memory grew in this step
/// - full_search: all objects were searched, and fewer in most of the steps around it
/// - waiting: at least half of what it took longer than the steps around it, and a tenth of the
///   whole, its thread was not on a core. It waited for a core, other threads, a GPU or a page
/// - first: it is the first step, and nothing else is known
Tails tailsOf(const std::vector<StepFacts>& steps);

/// How many times as long as the steps around it; 0 if those took no time.
double timesAround(const LongStep& step);
