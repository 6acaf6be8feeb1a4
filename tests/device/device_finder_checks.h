// SPDX-License-Identifier: Zlib
// What a DevicePairFinder does on every space. `find(finder, boxes, filters)` puts boxes where the
// finder wants them, and gives back what it found.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "broadphase/device_pair_finder.h"
#include "support.h"

namespace lbvh::test {

struct DeviceAnswer {
  Pairs pairs;
  std::uint64_t count = 0;
  std::size_t capacity = 0;
};

/// The second answer: the capacity of the first may still be that of fewer boxes.
template <class Find>
Pairs foundTwice(const Find& find, DevicePairFinder& finder, const Boxes& boxes,
                 const std::vector<Filter>& filters = {}) {
  find(finder, boxes, filters);
  const DeviceAnswer answer = find(finder, boxes, filters);
  EXPECT_EQ(answer.count, answer.pairs.size());
  EXPECT_GE(answer.capacity, answer.count);
  return answer.pairs;
}

template <class Find>
void agreesWithBruteForce(const DeviceOptions& options, const Find& find) {
  Random random(95);
  DevicePairFinder finder(options);
  for (const std::size_t n : {0u, 1u, 2u, 33u, 1025u, 3000u}) {
    SCOPED_TRACE(n);
    const Boxes boxes = boxSets()[0].make(n, random);
    EXPECT_EQ(foundTwice(find, finder, boxes), bruteForce(boxes));
  }
  for (const BoxSet& set : boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(180, random);
    std::vector<Filter> filters(boxes.size());
    for (Filter& filter : filters) filter = {1 << random.below(3), static_cast<int>(random.bits())};
    EXPECT_EQ(foundTwice(find, finder, boxes, filters), bruteForce(boxes, filters));
  }
}

inline void refusesWhatDoesNotFit(DeviceOptions options) {
  DevicePairFinder finder(options);
  const View<const Aabb> tooMany{nullptr, (std::size_t{1} << 30) + 1};
  EXPECT_THROW(finder.find(tooMany, {}, nullptr), std::length_error);
  EXPECT_THROW(finder.find({nullptr, 3}, {nullptr, 2}, nullptr), std::invalid_argument);
  EXPECT_THROW(finder.reserve(tooMany.size, 1), std::length_error);
  constexpr std::size_t kMoreThan31Bits = std::size_t{1} << 31;
  EXPECT_THROW(finder.reserve(1, kMoreThan31Bits), std::length_error);
  EXPECT_THROW(finder.reserve(std::size_t{1} << 30, 0), std::length_error) << "eight a box";
  options.leastCapacity = kMoreThan31Bits;
  EXPECT_THROW(DevicePairFinder{options}, std::length_error);
}

/// 2,000 coincident boxes have 1,999,000 pairs.
template <class Find>
void stopsAtItsLimit(DeviceOptions options, const Find& find) {
  options.maxPairs = 1000;
  DevicePairFinder finder(options);
  const Boxes boxes(2000, boxAt(0, 0, 0, 1));
  for (int round = 0; round < 2; ++round) {
    const DeviceAnswer answer = find(finder, boxes, {});
    EXPECT_GT(answer.count, options.maxPairs);
    EXPECT_LT(answer.count, 100000u);
    EXPECT_LE(answer.pairs.size(), options.maxPairs);
  }
  const Boxes few(40, boxAt(0, 0, 0, 1));
  EXPECT_EQ(find(finder, few, {}).pairs, bruteForce(few));
}

}  // namespace lbvh::test
