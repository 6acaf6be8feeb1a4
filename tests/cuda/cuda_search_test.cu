// SPDX-License-Identifier: Zlib
// Tests each search separately, over blocks and over a binary tree. Checks the pairs, the number of
// pairs of each box, and their positions in the box's list. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "broadphase/core/morton.h"
#include "broadphase/cuda/kernels/block_search.cuh"
#include "broadphase/cuda/kernels/filter_order.cuh"
#include "broadphase/cuda/kernels/tree_search.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/lbvh/hierarchy.h"
#include "cuda_fixture.h"
#include "device_boxes.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::download;
using test::OnDevice;
using test::Pairs;
using test::Random;
using test::view;
using test::writable;

class CudaSearch : public test::OnCuda {};

/// How to search: over blocks, or over a tree.
struct Way {
  std::uint32_t parts;  ///< number of warps that share a block; 0: search over a tree
};
constexpr Way kWays[] = {{1}, {2}, {4}, {8}, {0}};

std::ostream& operator<<(std::ostream& out, Way way) { return out << "parts " << way.parts; }

struct Search {
  Way way{1};
  std::size_t room = 1 << 20;
  std::uint64_t limit = 1 << 30;
  std::vector<Filter> filters;
  StepHeader header;
};

struct Found {
  Pairs pairs;  ///< unsorted
  StepHeader header;
};

void searchBlocks(CudaSpace& space, const Search& asked, View<const Aabb> boxes,
                  const std::uint32_t* ids, const FoundPairs& found, StepHeader* header) {
  LeafBlockBuffers buffers{DeviceMemory{}};
  const LeafBlocks leaves = buffers.ensure(boxes.size());
  space.fill(leaves.closed, 0);
  space.launch<packBlocksKernel>(
      leaves.groupCount, PackBlocks::kGroup,
      PackBlocks{boxes, ids, leaves, header, nullptr, found.rule.filters});
  const FindBlockPairs search{leaves, found, header, asked.way.parts};
  space.launch<findBlockPairsKernel<false>>(search.blocks<false>(),
                                            FindBlockPairs::kBlockThreads<false>, search);
  space.wait();
}

/// Gives all boxes the same code, so that the tree is split by the positions in the order.
void searchTree(CudaSpace& space, const Search& asked, View<const Aabb> boxes,
                const std::uint32_t* ids, const FoundPairs& found) {
  const auto n = static_cast<std::uint32_t>(boxes.size());
  const OnDevice<std::uint32_t> codes(std::vector<std::uint32_t>(n, 7));
  const OnDevice<std::uint32_t> arrivals(std::vector<std::uint32_t>(n, kNullIndex));
  const OnDevice<Node> nodes(std::vector<Node>(2 * n));
  space.forEach(n, BuildHierarchy<std::uint32_t>{boxes, ids, codes.view().data(), n,
                                                 writable(arrivals), writable(nodes)});
  space.launch<findTreePairsKernel>((n + kThreads - 1) / kThreads, kThreads,
                                    FindTreePairs{nodes.view().data(), n, found});
  space.wait();
}

/// Searches the boxes in `order`. For a tree, boxes with a NaN are moved after all others. Checks
/// the number of pairs of each box, and their positions in the box's list.
Found search(const Search& asked, const Boxes& boxes, std::vector<std::uint32_t> order) {
  const std::size_t n = boxes.size();
  if (asked.way.parts == 0)
    std::stable_partition(order.begin(), order.end(),
                          [&](std::uint32_t id) { return classify(boxes[id]) != BoxClass::nan; });
  CudaSpace space;
  const OnDevice<Aabb> there(boxes);
  const OnDevice<std::uint32_t> ids(order), counts(std::vector<std::uint32_t>(n, 0));
  const OnDevice<std::uint32_t> places(std::vector<std::uint32_t>(asked.room));
  const OnDevice<Pair> room(Pairs(asked.room));
  const OnDevice<Filter> filters(asked.filters);
  const OnDevice<StepHeader> header(std::vector<StepHeader>{asked.header});
  StepHeader* const out = writable(header);
  PairRule rule;
  if (!asked.filters.empty()) rule.filters = filters.view().data();
  const FoundPairs found{{writable(room), asked.room},
                         asked.limit,
                         reinterpret_cast<unsigned long long*>(&out->pairs),
                         rule,
                         writable(counts),
                         writable(places)};
  if (asked.way.parts != 0)
    searchBlocks(space, asked, there.view(), ids.view().data(), found, out);
  else
    searchTree(space, asked, there.view(), ids.view().data(), found);

  Found result;
  result.header = download(header.view())[0];
  const std::size_t written = std::min<std::size_t>(result.header.pairs, asked.room);
  result.pairs = download(View<const Pair>{room.view().data(), written});
  const auto countedPairs = download(View<const std::uint32_t>{counts.view().data(), n});
  const auto placed = download(View<const std::uint32_t>{places.view().data(), written});
  std::map<std::uint32_t, std::vector<std::uint32_t>> lists;
  for (std::size_t i = 0; i < written; ++i) lists[result.pairs[i].first].push_back(placed[i]);
  for (std::uint32_t box = 0; box < n; ++box) {
    std::vector<std::uint32_t> list = lists[box], expected(countedPairs[box]);
    std::iota(expected.begin(), expected.end(), 0u);
    std::sort(list.begin(), list.end());
    EXPECT_EQ(list, expected) << "places of box " << box;
  }
  return result;
}

std::vector<std::uint32_t> inOrder(std::size_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::vector<std::uint32_t> inAnyOrder(std::size_t n, Random& random) {
  std::vector<std::uint32_t> order = inOrder(n);
  for (auto left = static_cast<std::uint32_t>(n); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

Pairs sorted(Pairs pairs) {
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

bool areTrueAndDifferent(const Pairs& found, const Pairs& all) {
  const Pairs pairs = sorted(found);
  return std::includes(all.begin(), all.end(), pairs.begin(), pairs.end()) &&
         std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end();
}

TEST_F(CudaSearch, EverySearchFindsAllPairsInAnyOrder) {
  Random random(501);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(130, random);
    Search asked;
    asked.filters.resize(boxes.size());
    for (Filter& filter : asked.filters)
      filter = {1 << random.below(3), static_cast<int>(random.bits())};
    for (const Way way : kWays) {
      asked.way = way;
      const Found found = search(asked, boxes, inAnyOrder(boxes.size(), random));
      EXPECT_EQ(sorted(found.pairs), test::bruteForce(boxes, asked.filters)) << way;
    }
  }
}

// There are 150 blocks along a line, in five groups. Because of long boxes, some blocks overlap all
// others, but the search's list of blocks holds only 64 at a time.
TEST_F(CudaSearch, BlocksMayOverlapMoreBlocksThanAListHolds) {
  Random random(502);
  Boxes boxes;
  for (int i = 0; i < 4800; ++i)
    boxes.push_back(test::boxAt(2 * static_cast<float>(i), 0, 0, 0.5f));
  for (const std::size_t i : {7u, 40u, 1050u, 2000u, 4799u}) {
    boxes[i].min[0] = 1;
    boxes[i].max[0] = 9600;
  }
  const Pairs expected = test::bruteForce(boxes);
  for (const Way way : kWays) {
    Search asked;
    asked.way = way;
    EXPECT_EQ(sorted(search(asked, boxes, inOrder(boxes.size())).pairs), expected) << way;
  }
}

// Seven boxes at borders of blocks and groups overlap. All other boxes are inverted, and overlap
// nothing.
TEST_F(CudaSearch, ThirtyThreeGroupsAreSearched) {
  Boxes boxes(33 * 1024, Aabb{{1, 1, 1}, {0, 0, 0}});
  for (const std::size_t i : {0u, 31u, 1023u, 1024u, 32767u, 32768u, 33791u})
    boxes[i] = test::boxAt(5, 5, 5, 1);
  Search asked;
  asked.room = 1000;
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.pairs, 21u);
}

/// For each level, the positions beside the first and the last border between two nodes. Also the
/// last position of the order.
std::vector<std::size_t> placesAtBorders(std::size_t n) {
  std::vector<std::size_t> places;
  for (std::size_t node = 32; node < n; node *= 32)
    for (const std::size_t i : {node - 1, node, n / node * node - 1, n / node * node, n - 1})
      if (i < n) places.push_back(i);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// The numbers of boxes need 2, 3 and 4 levels of bounds below the root. Most boxes have a NaN. The
// rest form two distant clusters. Pairs are lost if any level omits a node or confuses it with
// another.
TEST_F(CudaSearch, AllPairsAreFoundWithAnyNumberOfLevels) {
  for (const std::size_t groups : {32u, 33u, 1025u}) {
    SCOPED_TRACE(groups);
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    Boxes boxes(groups * 1024 - 5, Aabb{{kNan, 0, 0}, {0, 0, 0}});
    const std::vector<std::size_t> places = placesAtBorders(boxes.size());
    for (std::size_t k = 0; k < places.size(); ++k)
      boxes[places[k]] =
          test::boxAt(k % 3 == 0 ? 900.0f : 5.0f, 5, static_cast<float>(k) * 0.01f, 1);
    const std::size_t far = (places.size() + 2) / 3, near = places.size() - far;
    Search asked;
    asked.room = 1000;
    EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.pairs,
              far * (far - 1) / 2 + near * (near - 1) / 2);
  }
}

// 1,024 coincident boxes fill 32 blocks. Each box overlaps all other boxes of all blocks.
TEST_F(CudaSearch, CoincidentBoxesHaveAllPairs) {
  for (const Way way : {Way{1}, Way{8}, Way{0}}) {
    const Boxes boxes(1024, test::boxAt(0, 0, 0, 1));
    Search asked;
    asked.way = way;
    const Found found = search(asked, boxes, inOrder(boxes.size()));
    EXPECT_EQ(found.header.pairs, 523776u);
    EXPECT_TRUE(areTrueAndDifferent(found.pairs, test::bruteForce(boxes)));
  }
}

// All boxes overlap. `header.tests` counts the blocks and boxes that a sample of the blocks visits.
TEST_F(CudaSearch, BlocksWhoseFiltersCannotMatchAreNotSearched) {
  const Boxes boxes(33 * 1024, test::boxAt(0, 0, 0, 1));
  const auto split = [&](Filter first, Filter second) {
    Search asked;
    asked.room = 1000;
    asked.filters.assign(boxes.size(), first);
    std::fill(asked.filters.begin() + 1040, asked.filters.end(), second);
    return search(asked, boxes, inOrder(boxes.size())).header;
  };
  EXPECT_EQ(split({1, 2}, {1, 2}).tests, 0u);
  EXPECT_EQ(split({1, 4}, {2, 4}).tests, 0u);
  const StepHeader one = split({2, 4}, {4, 8});
  EXPECT_EQ(one.pairs, 0u);
  EXPECT_EQ(one.tests, 0u) << "a filter must match both ways";
}

// Up to sixteen consecutive boxes match all other boxes, including the boxes of other blocks and
// groups. No other pair of boxes matches.
TEST_F(CudaSearch, BlocksOfSeveralFiltersAreSearched) {
  const Boxes boxes(2048, test::boxAt(0, 0, 0, 1));
  for (const std::size_t begin : {16u, 1008u, 1023u, 1040u, 2047u})
    for (const Way way : {Way{1}, Way{8}}) {
      Search asked;
      asked.way = way;
      asked.filters.assign(boxes.size(), Filter{1, 2});
      for (std::size_t i = begin; i < std::min<std::size_t>(begin + 16, 2048); ++i)
        asked.filters[i] = {2, 1};
      EXPECT_EQ(sorted(search(asked, boxes, inOrder(boxes.size())).pairs),
                test::bruteForce(boxes, asked.filters))
          << way << " from " << begin;
    }
}

// A group is sorted only if it is complete and all its keys are equal. It is not sorted if it may
// have boxes with a NaN.
TEST_F(CudaSearch, GroupsWithEqualKeysAreSortedByFilter) {
  constexpr std::uint32_t kGroup = PackBlocks::kGroup, kBoxes = 5 * kGroup - 3;
  std::vector<std::uint64_t> keys(kBoxes, 9);
  std::fill_n(keys.begin(), kGroup, 3u);
  std::fill_n(keys.begin() + kGroup, kGroup / 2, 5u);
  std::vector<Filter> filters;
  for (std::uint32_t i = 0; i < kBoxes; ++i) filters.push_back({1 << i % 12, -1 << i % 5});
  const std::vector<std::uint32_t> before(inOrder(kBoxes));
  StepHeader header;
  header.scene.ordinary = 2 * kGroup + 7;
  header.scene.oversized = kGroup - 7;
  const OnDevice<std::uint64_t> keysThere(keys);
  const OnDevice<std::uint32_t> ids(before);
  const OnDevice<Filter> filtersThere(filters);
  const OnDevice<StepHeader> headerThere(std::vector<StepHeader>{header});
  CudaSpace space;
  space.launch<sortTiesKernel<std::uint64_t>>(
      kBoxes / kGroup, kGroup,
      SortTies<std::uint64_t>{keysThere.view(), writable(ids), filtersThere.view().data(),
                              headerThere.view().data()});
  space.wait();
  const std::vector<std::uint32_t> after = download(ids.view());
  for (std::uint32_t group = 0; group < 5; ++group) {
    SCOPED_TRACE(group);
    const auto begin = after.begin() + group * kGroup, end = std::min(begin + kGroup, after.end());
    const auto old = before.begin() + group * kGroup;
    ASSERT_TRUE(std::is_permutation(begin, end, old));
    const bool isSorted = group == 0 || group == 2;
    EXPECT_EQ(std::equal(begin, end, old), !isSorted);
    std::size_t switches = 0;
    for (auto at = begin + 1; at < end; ++at)
      switches += (*at - at[-1]) % 60 != 0;  // the filters repeat after 60 boxes
    if (isSorted) EXPECT_EQ(switches, 59u);
  }
}

// 32 pillars stand on four plates, so 128 pairs are found at once, after up to two other pairs. The
// warp is the last of its thread block, so that no shared memory follows its own.
TEST_F(CudaSearch, StageHolds128Pairs) {
  for (const std::size_t others : {0, 1, 2}) {
    Boxes boxes(5 * 32, Aabb{{1, 1, -1}, {0, 0, -2}});
    for (std::size_t k = 0; k < 4; ++k) {
      const float z = static_cast<float>(k);
      boxes[96 + k] = {{0, 0, z}, {64, 1, z + 0.5f}};
    }
    for (std::size_t k = 0; k <= others && others > 0; ++k)
      boxes[110 + k] = test::boxAt(1.5f * static_cast<float>(k), 50, 0, 1);
    for (std::size_t k = 0; k < 32; ++k) {
      const float x = 2 * static_cast<float>(k);
      boxes[128 + k] = {{x, 0, 0}, {x + 1, 1, 9}};
    }
    const Pairs expected = test::bruteForce(boxes);
    EXPECT_EQ(expected.size(), 128 + others);
    EXPECT_EQ(sorted(search({}, boxes, inOrder(boxes.size())).pairs), expected);
    Search asked;
    asked.limit = others;  // reached before the 128 pairs are found
    EXPECT_GT(search(asked, boxes, inOrder(boxes.size())).header.pairs, others);
  }
}

TEST_F(CudaSearch, TooShortListIsFilledAndAllPairsAreCounted) {
  const Boxes boxes(200, test::boxAt(0, 0, 0, 1));
  const Pairs all = test::bruteForce(boxes);
  for (const Way way : kWays)
    for (const std::size_t room : {1, 127, 128, 129, 5000}) {
      Search asked;
      asked.way = way;
      asked.room = room;
      const Found found = search(asked, boxes, inOrder(boxes.size()));
      EXPECT_EQ(found.header.pairs, all.size());
      EXPECT_EQ(found.pairs.size(), room);
      EXPECT_TRUE(areTrueAndDifferent(found.pairs, all));
    }
}

// If there are more pairs than the limit, each warp stops after the pairs that it holds. If there
// are not, no pair is lost.
TEST_F(CudaSearch, StopsBeyondTheLimitAndNotAtIt) {
  const Boxes boxes(640, test::boxAt(0, 0, 0, 1));
  const Pairs all = test::bruteForce(boxes);
  for (const Way way : kWays) {
    Search asked;
    asked.way = way;
    asked.limit = all.size();
    EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.pairs, all.size());
    asked.limit = 1000;
    const Found found = search(asked, boxes, inOrder(boxes.size()));
    EXPECT_GT(found.header.pairs, asked.limit);
    const std::uint32_t warps = 20 * std::max(way.parts, 1u);
    // The staged pairs, and the pairs that the lanes find until the warp reads the count again.
    const std::uint32_t most =
        kStaged + (way.parts != 0 ? kStaged : kWarp * TreeSearchMemory::kVisits);
    EXPECT_LE(found.header.pairs, asked.limit + most * warps);
    EXPECT_TRUE(areTrueAndDifferent(found.pairs, all));
  }
}

// In a random order, each block is as long as the scene.
TEST_F(CudaSearch, OrderWithTooLargeExtentsIsNotSearched) {
  Random random(503);
  Boxes boxes;
  for (int i = 0; i < 1500; ++i)
    boxes.push_back({{static_cast<float>(i), 0, 0}, {static_cast<float>(i + 1), 0, 0}});
  Search asked;
  asked.header.grid.perLength = 1 / 1500.0f;
  const Found good = search(asked, boxes, inOrder(boxes.size()));
  EXPECT_NEAR(static_cast<double>(good.header.extents), 65536, 47);
  asked.header.arguments.mostExtents = good.header.extents;
  EXPECT_GT(search(asked, boxes, inOrder(boxes.size())).header.tests, 0u) << "at the limit";
  const Found bad = search(asked, boxes, inAnyOrder(boxes.size(), random));
  EXPECT_GT(bad.header.extents, 30 * good.header.extents);
  EXPECT_EQ(bad.header.tests, 0u);
  EXPECT_EQ(bad.header.pairs, 0u);
  asked.header.arguments.mostExtents = ~std::uint64_t{0};
  EXPECT_GT(search(asked, boxes, inAnyOrder(boxes.size(), random)).header.tests,
            5 * good.header.tests);
}

// The grid excludes far boxes, so a block may be far larger than the grid. With an oversized box a
// block may even be infinite. But each block adds at most three lengths of the scene to the sum.
TEST_F(CudaSearch, ExtentsDoNotOverflow) {
  Boxes boxes;
  for (int i = 0; i < 2048; ++i) boxes.push_back(test::boxAt(static_cast<float>(i), 0, 0, 0));
  boxes[2047].min[0] = std::numeric_limits<float>::quiet_NaN();
  Search asked;
  asked.header.grid.perLength = 1e6f;
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.extents, 64u * 3 * 65536);
  asked.header.grid.perLength = std::numeric_limits<float>::infinity();
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.extents, 64u * 3 * 65536);
  boxes[0].max[1] = std::numeric_limits<float>::infinity();
  asked.header.grid.perLength = 1e-9f;
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.extents, 3u * 65536);
  asked.header.grid.perLength = 0;
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.extents, 0u);
}

}  // namespace
}  // namespace lbvh
