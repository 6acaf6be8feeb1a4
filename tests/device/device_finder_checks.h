// SPDX-License-Identifier: Zlib
// Checks a DevicePairFinder on the host or a GPU. `find(finder, boxes, filters)` copies boxes to
// the finder's memory, searches, and returns the result.
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

/// Searches twice and returns the second answer, because the first search may still have the
/// capacity for fewer boxes.
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
  const Aabb any{};
  const auto sceneOf = [&](std::size_t boxes) { return DeviceScene::of({&any, boxes}); };
  constexpr std::size_t kMaxBoxes = std::size_t{1} << 30;
  EXPECT_THROW(finder.find(sceneOf(kMaxBoxes + 1), {}, nullptr), std::length_error);
  EXPECT_THROW(finder.reserve(sceneOf(kMaxBoxes + 1), {}, 1), std::length_error);
  constexpr std::size_t kMoreThan31Bits = std::size_t{1} << 31;
  EXPECT_THROW(finder.reserve(sceneOf(1), {}, kMoreThan31Bits), std::length_error);
  EXPECT_THROW(finder.reserve(sceneOf(kMaxBoxes), {}, 0), std::length_error)
      << "eight pairs per box";
  options.initialPairCapacity = kMoreThan31Bits;
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
