// SPDX-License-Identifier: Zlib
// A finder on the host. Each of its steps is compared with brute force.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "broadphase/core/morton.h"
#include "support.h"

namespace lbvh::test {

/// A finder, its boxes, and the pairs that it must find.
class Watched {
 public:
  explicit Watched(int threads, std::uint64_t maxPairs = Options{}.maxPairs)
      : finder(optionsFor(threads, maxPairs)) {}

  /// Runs one step, and compares it with brute force. Returns the number of boxes whose pairs were
  /// searched for.
  /// @param tellsWhatChanged whether to tell the finder which boxes have changed
  /// @param readsPairs whether to read all pairs after the step
  std::size_t step(bool tellsWhatChanged = false, bool readsPairs = true) {
    // Swaps arrays and poisons the old array, so that stale reads are noticed.
    given_[0].swap(given_[1]);
    given_[0] = boxes;
    given_[1].assign(given_[1].size(), boxAt(NAN, NAN, NAN, NAN));
    if (tellsWhatChanged)
      finder.update(view(given_[0]), view(filters), view(changes()));
    else
      finder.update(view(given_[0]), view(filters));
    lastBoxes_ = boxes;
    lastFilters_ = filters;
    const Pairs now = bruteForce(boxes, filters);
    if (readsPairs) EXPECT_EQ(toVector(finder.pairs()), now);
    EXPECT_EQ(finder.stats().pairs, now.size());
    EXPECT_EQ(finder.stats().oversizedBoxes, count(BoxClass::oversized));
    EXPECT_EQ(finder.stats().nanBoxes, count(BoxClass::nan));
    const auto counts = [this](Pair pair) {
      return !involvesRemoved(pair, {removed_.data(), removed_.size()});
    };
    Pairs past, added, removed;
    std::copy_if(before_.begin(), before_.end(), std::back_inserter(past), counts);
    std::set_difference(now.begin(), now.end(), past.begin(), past.end(),
                        std::back_inserter(added));
    std::set_difference(past.begin(), past.end(), now.begin(), now.end(),
                        std::back_inserter(removed));
    EXPECT_EQ(toVector(finder.added()), added);
    EXPECT_EQ(toVector(finder.removed()), removed);
    before_ = now;
    removed_.assign(boxes.size(), 0);
    return finder.stats().searched;
  }

  void replaceObject(std::uint32_t index) {
    finder.replaceObject(index);
    removed_[index] = 1;
  }

  PairFinder finder;
  Boxes boxes;
  std::vector<Filter> filters;

 private:
  std::size_t count(BoxClass boxClass) const {
    return static_cast<std::size_t>(std::count_if(
        boxes.begin(), boxes.end(), [=](const Aabb& box) { return classify(box) == boxClass; }));
  }

  /// One bit per box: whether the box or its filter has changed since the previous step.
  std::vector<std::uint64_t> changes() const {
    const auto differ = [](const auto& now, const auto& last, std::size_t i) {
      return i < last.size() && std::memcmp(&now[i], &last[i], sizeof now[i]) != 0;
    };
    std::vector<std::uint64_t> bits(boxes.size() / 64 + 1);
    for (std::size_t i = 0; i < boxes.size(); ++i)
      if (differ(boxes, lastBoxes_, i) || (!filters.empty() && differ(filters, lastFilters_, i)))
        bits[i / 64] |= std::uint64_t{1} << i % 64;
    return bits;
  }

  static Options optionsFor(int threads, std::uint64_t maxPairs) {
    Options options;
    options.backend = Backend::host;
    options.threads = threads;
    options.maxPairs = maxPairs;
    return options;
  }

  Pairs before_;
  Boxes given_[2];
  Boxes lastBoxes_;
  std::vector<Filter> lastFilters_;
  std::vector<std::uint8_t> removed_;
};

}  // namespace lbvh::test
