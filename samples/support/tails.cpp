// SPDX-License-Identifier: Zlib
// Percentiles and reasons of slow steps; see the header.
#include "support/tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "support/timing.h"

namespace {

constexpr std::size_t kAround = 15;
constexpr std::size_t kLongest = 3;

/// The median of `value` over 15 steps: step i and, if possible, seven steps on either side of it.
template <class Value>
double medianAround(const std::vector<StepFacts>& steps, std::size_t i, Value value) {
  const std::size_t count = std::min(kAround, steps.size());
  const std::size_t before = std::min(i, kAround / 2);
  const std::size_t first = std::min(i - before, steps.size() - count);
  std::vector<double> values;
  for (std::size_t k = first; k < first + count; ++k) values.push_back(value(steps[k]));
  return median(std::move(values));
}

bool isFullSearch(const std::vector<StepFacts>& steps, std::size_t i) {
  const auto share = [](const StepFacts& step) {
    return step.objects > 0 ? double(step.searched) / double(step.objects) : 0.0;
  };
  return share(steps[i]) >= 1 && medianAround(steps, i, share) < 1;
}

bool isWaiting(const StepFacts& step, double around) {
  const double waited = step.ms - step.cpuMs;
  return waited >= step.ms / 10 && waited >= (step.ms - around) / 2;
}

std::string reasonOf(const std::vector<StepFacts>& steps, std::size_t i, double around) {
  std::vector<const char*> words;
  if (steps[i].grew) words.push_back("growth");
  if (isFullSearch(steps, i)) words.push_back("full_search");
  if (isWaiting(steps[i], around)) words.push_back("waiting");
  if (words.empty()) words.push_back(i == 0 ? "first" : "-");
  return fmt::format("{}", fmt::join(words, "+"));
}

}  // namespace

Tails tailsOf(const std::vector<StepFacts>& steps) {
  std::vector<double> values;
  for (const StepFacts& step : steps) values.push_back(step.ms);
  Tails tails{median(values),
              percentile(values, 0.95),
              percentile(values, 0.99),
              percentile(values, 1),
              {}};
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&values](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  order.resize(std::min(order.size(), kLongest));
  for (const std::size_t i : order) {
    const double around = medianAround(steps, i, [](const StepFacts& step) { return step.ms; });
    tails.longest.push_back({int(i) + 1, values[i], around, reasonOf(steps, i, around)});
  }
  return tails;
}

double timesAround(const LongStep& step) { return step.around > 0 ? step.ms / step.around : 0; }
