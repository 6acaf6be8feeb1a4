// SPDX-License-Identifier: Zlib
#include "history.h"

#include <algorithm>
#include <cmath>

double reachOf(const History& history, const std::vector<Series>& series, bool cutsSpikes) {
  std::vector<double> most(history.size());
  for (std::size_t i = 0; i < history.size(); ++i)
    for (const Series& one : series) most[i] = std::max(most[i], one.valueOf(history[i]));
  std::sort(most.begin(), most.end());
  if (most.empty()) return 0;
  return cutsSpikes ? std::min(most.back(), 2.5 * most[most.size() * 3 / 4]) : most.back();
}

double niceCeiling(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (value <= factor * power) return factor * power;
  return 10 * power;
}
