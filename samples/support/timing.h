// SPDX-License-Identifier: Zlib
// Wall-clock timing for the samples: a stopwatch, percentiles and the mean. Does not print.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// The value that is larger than about the fraction `share` of the values; 0 if there are none.
inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  const auto middle = values.begin() + std::min(place, last);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median. For an even number of values, the larger of the middle two.
inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

/// The mean; 0 if there are no values.
inline double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
