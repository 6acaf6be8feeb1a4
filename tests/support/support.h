// SPDX-License-Identifier: Zlib
// What the tests share: brute force, the permanent citizen that every result is held against, and
// generators of box sets, kind ones and nasty ones.
#pragma once

#include <cstdint>
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

/// A named way to make n boxes.
struct BoxSet {
  const char* name;
  Boxes (*make)(std::size_t n, Random& random);
};

inline void PrintTo(const BoxSet& set, std::ostream* out) { *out << set.name; }

/// Every kind of set that the exactness tests run on.
const std::vector<BoxSet>& boxSets();

}  // namespace test
}  // namespace lbvh
