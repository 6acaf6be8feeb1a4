// SPDX-License-Identifier: Zlib
// Radix sort by splitting ("Thinking Parallel"; Harris, Sengupta, Owens 2007). For each bit, keys
// with a 0 move to the front and keys with a 1 move after them. An exclusive scan computes the new
// positions. Teaches why practical radix sorts take several bits at a time.
#pragma once

#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

struct Place {
  std::uint32_t before = 0;
  GPULBVH_HD Place& operator+=(const Place& other) {
    before += other.before;
    return *this;
  }
};

struct CountZero {
  View<const std::uint32_t> keys;
  int bit;
  Place* places;
  GPULBVH_HD void operator()(std::uint32_t i) const {
    places[i].before = i < keys.size() ? ~keys[i] >> bit & 1 : 0;
  }
};

struct MoveByBit {
  View<const std::uint32_t> keys, values;
  int bit;
  /// By key: the number of keys with a 0 before it. One more element counts all keys with a 0.
  const Place* places;
  std::uint32_t *toKeys, *toValues;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const std::uint32_t zerosBefore = places[i].before, zeros = places[keys.size()].before;
    const bool isOne = (keys[i] >> bit & 1) != 0;
    const std::uint32_t to = isOne ? zeros + (i - zerosBefore) : zerosBefore;
    toKeys[to] = keys[i];
    toValues[to] = values[i];
  }
};

struct CopyBack {
  View<const std::uint32_t> keys, values;
  std::uint32_t *toKeys, *toValues;
  GPULBVH_HD void operator()(std::uint32_t i) const {
    toKeys[i] = keys[i];
    toValues[i] = values[i];
  }
};

template <class Space>
void sortBySplitting(SortProblem<Space>& problem) {
  const std::size_t n = problem.keys.size();
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<Place>(n + 1));
  Place* places = scratch.template lend<Place>("places", n + 1).data();
  View<std::uint32_t> keys = problem.keys, values = problem.values, toKeys = problem.spareKeys,
                      toValues = problem.spareValues;
  for (int bit = 0; bit < problem.bits; ++bit) {
    problem.space.forEach(n + 1, CountZero{keys, bit, places});
    problem.space.sumBefore(View<Place>{places, n + 1});
    problem.space.forEach(n, MoveByBit{keys, values, bit, places, toKeys.data(), toValues.data()});
    const View<std::uint32_t> k = keys, v = values;
    keys = toKeys, values = toValues, toKeys = k, toValues = v;
  }
  if (keys.data() != problem.keys.data())
    problem.space.forEach(n, CopyBack{keys, values, problem.keys.data(), problem.values.data()});
}

}  // namespace lbvh::variants
