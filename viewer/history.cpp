#include "history.h"

#include <algorithm>
#include <cmath>

double reachOf(const History& history, const std::vector<Series>& series) {
  std::vector<double> most(history.size());
  for (std::size_t i = 0; i < history.size(); ++i)
    for (const Series& one : series) most[i] = std::max(most[i], one.valueOf(history[i]));
  if (most.empty()) return 0;
  const auto at = most.begin() + std::ptrdiff_t(0.9 * double(most.size() - 1));
  std::nth_element(most.begin(), at, most.end());
  return 1.25 * *at;
}

double niceCeiling(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (value <= factor * power) return factor * power;
  return 10 * power;
}
