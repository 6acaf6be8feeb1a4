// SPDX-License-Identifier: Zlib
// Tests searches on the host for boxes that overlap but whose filters refuse each other. Boxes with
// equal keys are sorted by filter, and blocks whose filters cannot match are not tested.
#include "broadphase/host/filter_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "broadphase/host/blocks.h"
#include "broadphase/host/box_order.h"
#include "simd_test.h"
#include "skin_hook.h"
#include "support.h"
#include "watched_finder.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::view;
using test::Watched;

using Ids = std::vector<std::uint32_t>;

class FilterOrderTest : public test::SimdTest {};

/// Gives the objects twelve kinds in turn. Each kind collides only with the next and the previous
/// kind.
Filter ofTwelve(std::uint32_t i) { return {1 << i % 12, 1 << (i + 1) % 12 | 1 << (i + 11) % 12}; }

std::vector<Filter> filtersOf(std::size_t n, Filter (*filterOf)(std::uint32_t)) {
  std::vector<Filter> filters;
  for (std::uint32_t i = 0; i < n; ++i) filters.push_back(filterOf(i));
  return filters;
}

auto byFilter(const std::vector<Filter>& filters) {
  return [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(filters[a].group, filters[a].mask, a) <
           std::tuple(filters[b].group, filters[b].mask, b);
  };
}

Ids orderOf(const Boxes& boxes, const std::vector<Filter>& filters) {
  HostSpace space(1);
  BoxOrder order(space, simdKernels());
  BoxOrder::Scratch scratch;
  scratch.reset(BoxOrder::scratchBytesFor(boxes.size()));
  StepHeader header;
  StepStats stats;
  Ids ids(boxes.size());
  order.find(view(boxes), view(filters), 0, header, ids.data(), scratch, stats);
  return ids;
}

TEST_P(FilterOrderTest, BoxesAtOnePositionAreSortedByFilter) {
  const Boxes boxes(3000, boxAt(1, 2, 3, 1));
  const std::vector<Filter> filters = filtersOf(boxes.size(), ofTwelve);
  Ids expected(boxes.size());
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(orderOf(boxes, {}), expected);
  EXPECT_EQ(orderOf(boxes, std::vector<Filter>(boxes.size(), Filter{1, 1})), expected);
  std::sort(expected.begin(), expected.end(), byFilter(filters));
  EXPECT_EQ(orderOf(boxes, filters), expected);
}

// Boxes at the same position stay together, and boxes with a NaN are last.
TEST_P(FilterOrderTest, OtherBoxesKeepTheirOrder) {
  Random random(971);
  for (const float side : {20.0f, 20000.0f}) {  // with short and long keys
    Boxes boxes;
    for (int i = 0; i < 4000; ++i)
      boxes.push_back(i % 3 == 0   ? boxAt(5, 5, 5, 0.5f)
                      : i % 3 == 1 ? boxAt(15, 5, 5, 0.5f)
                                   : boxAt(random.uniform(0, side), random.uniform(0, side),
                                           random.uniform(0, side), 0.01f));
    boxes[7].min[0] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<Filter> filters = filtersOf(boxes.size(), ofTwelve);
    const Ids plain = orderOf(boxes, {}), sorted = orderOf(boxes, filters);
    EXPECT_NE(plain, sorted);
    EXPECT_EQ(sorted.back(), 7u);
    EXPECT_TRUE(std::is_permutation(plain.begin(), plain.end(), sorted.begin()));
    for (std::size_t k = 0; k < plain.size(); ++k)
      if (plain[k] % 3 == 2 && sorted[k] % 3 == 2) EXPECT_EQ(plain[k], sorted[k]) << k;
    for (const std::uint32_t place : {0u, 1u}) {
      Ids here;
      for (const std::uint32_t id : sorted)
        if (id % 3 == place && id != 7) here.push_back(id);
      EXPECT_TRUE(std::is_sorted(here.begin(), here.end(), byFilter(filters))) << place;
    }
  }
}

struct Found {
  std::uint64_t tests;  ///< tests of a box against a block
  test::Pairs pairs;    ///< empty unless the kind is ListKind::half
};

Found search(const Boxes& boxes, const std::vector<Filter>& filters, ListKind kind,
             const Ids& ids) {
  HostTasks tasks(1);
  BlockBuilder blocks(tasks, simdKernels());
  blocks.pack(view(boxes), view(filters), view(ids), ids.size(), false);
  std::vector<std::uint32_t> indices(8 << 20);
  std::vector<NeighbourList> byBox(boxes.size());
  NeighbourSearch search(tasks, simdKernels());
  const SearchPart part{&blocks.packed(), &blocks.packed()};
  search.find({&part, 1}, kind, {{indices.data(), indices.size()}, byBox.data()}, {});
  Found found{search.tests(), {}};
  for (std::uint32_t i = 0; i < boxes.size() && kind == ListKind::half; ++i)
    for (std::uint32_t k = 0; k < byBox[i].size; ++k)
      found.pairs.push_back({i, indices[static_cast<std::size_t>(byBox[i].start) + k]});
  std::sort(found.pairs.begin(), found.pairs.end());
  return found;
}

std::uint64_t testsByRank(const Boxes& boxes, const std::vector<Filter>& filters, const Ids& ids) {
  HostTasks tasks(1);
  BlockBuilder blocks(tasks, simdKernels());
  blocks.pack(view(boxes), view(filters), view(ids), ids.size(), false);
  std::vector<BlockHits> hits(8 << 20);
  std::vector<NeighbourList> byBlock(boxes.size());
  NeighbourSearch search(tasks, simdKernels());
  search.findByRank(blocks.packed(), {{hits.data(), hits.size()}, byBlock.data()}, {});
  return search.tests();
}

// A search tests a block of sixteen boxes at once. If each box is tested against each block, a full
// search makes n * n / 16 tests. A search by rank makes half as many.
TEST_P(FilterOrderTest, BlocksWhoseFiltersCannotMatchAreNotTested) {
  const Boxes boxes(3000, boxAt(0, 0, 0, 1));
  const std::uint64_t every = boxes.size() * boxes.size() / kLanes, own = boxes.size() / kLanes;
  struct Case {
    const char* name;
    Filter (*filterOf)(std::uint32_t);
    double share;  ///< share of all pairs that the filters accept
  };
  const Case cases[] = {
      {"all collide",
       [](std::uint32_t) {
         return Filter{1, 1};
       },
       1},
      {"none collides",
       [](std::uint32_t) {
         return Filter{1, 2};
       },
       0},
      {"two kinds",
       [](std::uint32_t i) {
         return i % 2 == 0 ? Filter{1, 2} : Filter{2, 1};
       },
       0.5},
      {"two kinds that never collide",
       [](std::uint32_t i) {
         return i % 2 == 0 ? Filter{1, 4} : Filter{2, 4};
       },
       0},
      {"twelve kinds", ofTwelve, 2.0 / 12},
      {"one that all collide with",
       [](std::uint32_t i) {
         return i == 1500 ? Filter{2, -1} : Filter{1, 2};
       },
       2.0 / 3000},
  };
  for (const Case& one : cases)
    for (const bool isByRank : {false, true}) {
      SCOPED_TRACE(one.name);
      const std::vector<Filter> filters = filtersOf(boxes.size(), one.filterOf);
      const Ids ids = orderOf(boxes, filters);
      const std::uint64_t tests = isByRank ? testsByRank(boxes, filters, ids)
                                           : search(boxes, filters, ListKind::full, ids).tests;
      const double all = double(every) / (isByRank ? 2 : 1);
      // The limit allows for the descent to the blocks, and for blocks with two kinds of boxes.
      EXPECT_LE(double(tests), 1.3 * one.share * all + 25 * double(own) + 1.5 * 3000);
      EXPECT_GE(double(tests), 0.9 * one.share * all);
    }
}

// The boxes are not sorted by filter, so each block has boxes with different filters.
TEST_P(FilterOrderTest, EachBoxOfABlockHasItsOwnFilter) {
  Random random(973);
  Boxes boxes;
  for (int i = 0; i < 4000; ++i)
    boxes.push_back(boxAt(random.uniform(0, 40), random.uniform(0, 40), random.uniform(0, 9), 1));
  const std::vector<Filter> filters = filtersOf(boxes.size(), ofTwelve);
  Ids inOrder(boxes.size());
  std::iota(inOrder.begin(), inOrder.end(), 0u);
  EXPECT_EQ(search(boxes, filters, ListKind::half, inOrder).pairs,
            test::bruteForce(boxes, filters));
}

// Filters change while most boxes rest, so blocks get other filters without being packed again.
TEST_P(FilterOrderTest, ChangedFiltersAreExact) {
  for (const char* skin : {"never", "always", "automatic"})
    for (const int threads : {1, 3})
      for (const bool tells : {false, true}) {
        SCOPED_TRACE(std::string(skin) + ", threads " + std::to_string(threads));
        test::forceSkin(skin);
        Watched scene(threads);
        test::forceSkin("automatic");
        Random random(972);
        for (int i = 0; i < 700; ++i)
          scene.boxes.push_back(i < 400 ? boxAt(0, 0, 0, 1)
                                        : boxAt(random.uniform(0, 9), random.uniform(0, 9), 0, 1));
        scene.filters.assign(700, Filter{1, 2});
        for (int step = 0; step < 60; ++step) {
          const auto any = [&] { return random.below(700); };
          if (step % 3 == 0) scene.filters[any()] = {2, 1};
          if (step % 5 == 0) scene.filters[any()] = {1, 2};
          if (step % 7 == 0) scene.filters[any()] = {4, -1};
          if (step % 4 == 0) scene.boxes[any()] = boxAt(random.uniform(0, 9), 0, 0, 1);
          if (step % 13 == 0) scene.boxes[any()].min[0] = std::numeric_limits<float>::quiet_NaN();
          if (step == 30) scene.filters = filtersOf(700, ofTwelve);
          scene.step(tells);
          ASSERT_FALSE(HasFailure()) << "step " << step;
        }
      }
}

// If the common filters of two blocks show that all their pairs are accepted, the search does not
// test the filters of single boxes. This is the case for most blocks at both ends of the row. The
// middle of the row has two kinds of boxes on the left and two on the right. Each kind on the left
// collides with one kind on the right, and with no other kind in the middle.
TEST_P(FilterOrderTest, PairsAreExactIfFiltersDependOnPosition) {
  for (const int threads : {1, 3}) {
    SCOPED_TRACE("threads " + std::to_string(threads));
    test::forceSkin("never");
    Watched scene(threads);
    test::forceSkin("automatic");
    Random random(974);
    for (int i = 0; i < 2000; ++i) {
      const float x = random.uniform(0, 60);
      scene.boxes.push_back(boxAt(x, random.uniform(0, 9), 0, 1));
      const bool isEven = i % 2 == 0;
      scene.filters.push_back(std::abs(x - 30) > 10 ? Filter{1, 19}
                              : x < 30              ? Filter{2, isEven ? 5 : 9}
                                                    : Filter{isEven ? 20 : 24, 3});
    }
    for (int step = 0; step < 6; ++step) {
      scene.step();
      ASSERT_FALSE(HasFailure()) << "step " << step;
      for (Aabb& box : scene.boxes) box.max[0] += 0.01f;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, FilterOrderTest, test::everySimd(), test::simdName);

}  // namespace
}  // namespace lbvh
