// SPDX-License-Identifier: Zlib
// Shared by the tests: brute force, with which every result is compared, and generators of box
// sets, both ordinary and degenerate.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"

namespace lbvh {

inline void PrintTo(Pair pair, std::ostream* out) {
  *out << "(" << pair.first << ", " << pair.second << ")";
}

namespace test {

using Boxes = std::vector<Aabb>;
using Pairs = std::vector<Pair>;

template <class T>
View<const T> view(const std::vector<T>& v) {
  return {v.data(), v.size()};
}

inline Pairs toVector(View<const Pair> pairs) { return {pairs.begin(), pairs.end()}; }

/// How many steps a long test takes: the environment variable TEST_STEPS (10000 in
/// `.ci/run steps-10000`), or else `usual`.
inline int manySteps(int usual) {
  const char* const told = std::getenv("TEST_STEPS");
  return told != nullptr ? static_cast<int>(std::strtol(told, nullptr, 10)) : usual;
}

inline Pairs bruteForce(const Boxes& boxes, const std::vector<Filter>& filters = {}) {
  Pairs pairs;
  for (std::uint32_t i = 0; i < boxes.size(); ++i)
    for (std::uint32_t j = i + 1; j < boxes.size(); ++j)
      if (overlap(boxes[i], boxes[j]) && (filters.empty() || shouldCollide(filters[i], filters[j])))
        pairs.push_back({i, j});
  return pairs;
}

/// Uniform numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }
  std::uint32_t below(std::uint32_t n) { return bits() % n; }
  float uniform(float lo = 0, float hi = 1) {
    return lo + (hi - lo) * static_cast<float>(bits() >> 8) * 0x1p-24f;
  }

 private:
  std::mt19937 engine_;
};

inline Aabb boxAround(const float (&centre)[3], float half) {
  return {{centre[0] - half, centre[1] - half, centre[2] - half},
          {centre[0] + half, centre[1] + half, centre[2] + half}};
}

inline Aabb boxAt(float x, float y, float z, float half) { return boxAround({x, y, z}, half); }

/// Boxes along the x axis, each of which overlaps the next one.
inline Boxes rowOfBoxes(std::size_t n) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i) boxes.push_back(boxAt(1.5f * static_cast<float>(i), 0, 0, 1));
  return boxes;
}

/// A named way to make n boxes.
struct BoxSet {
  const char* name;
  Boxes (*make)(std::size_t n, Random& random);
};

inline void PrintTo(const BoxSet& set, std::ostream* out) { *out << set.name; }

/// All box sets that the exactness tests run on.
const std::vector<BoxSet>& boxSets();

}  // namespace test
}  // namespace lbvh
