// SPDX-License-Identifier: Zlib
// The search by blocks alone, for each number of warps that share a block: what it finds, counts
// and places. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "broadphase/cuda/kernels/block_search.cuh"
#include "broadphase/cuda/runtime/space.cuh"
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

struct Search {
  std::uint32_t parts = 1;
  std::size_t room = 1 << 20;
  std::uint64_t limit = 1 << 30;
  std::vector<Filter> filters;
  StepHeader header;
};

struct Found {
  Pairs pairs;  ///< in no order
  StepHeader header;
};

/// Packs the boxes as they lie in `order`, and searches. Looks at the counts and places.
Found search(const Search& asked, const Boxes& boxes, const std::vector<std::uint32_t>& order) {
  const std::size_t n = boxes.size();
  CudaSpace space;
  const OnDevice<Aabb> there(boxes);
  const OnDevice<std::uint32_t> ids(order), counts(std::vector<std::uint32_t>(n, 0));
  const OnDevice<std::uint32_t> places(std::vector<std::uint32_t>(asked.room));
  const OnDevice<Pair> room(Pairs(asked.room));
  const OnDevice<Filter> filters(asked.filters);
  const OnDevice<StepHeader> header(std::vector<StepHeader>{asked.header});
  LeafBlockBuffers buffers{DeviceMemory{}};
  const LeafBlocks leaves = buffers.ensure(n);
  StepHeader* const out = writable(header);
  space.launch(leaves.groupCount, PackBlocks::kGroup, packBlocksKernel,
               PackBlocks{there.view(), ids.view().data, leaves, out});
  PairRule rule;
  if (!asked.filters.empty()) rule.filters = filters.view().data;
  const FoundPairs found{{writable(room), asked.room},
                         asked.limit,
                         reinterpret_cast<unsigned long long*>(&out->pairs),
                         rule,
                         writable(counts),
                         writable(places)};
  const FindBlockPairs search{leaves, found, out, asked.parts};
  space.launch(search.blocks(), kThreads, findBlockPairsKernel<false>, search);
  space.wait();

  Found result;
  result.header = download(header.view())[0];
  const std::size_t written = std::min<std::size_t>(result.header.pairs, asked.room);
  result.pairs = download(View<const Pair>{room.view().data, written});
  const auto countedPairs = download(View<const std::uint32_t>{counts.view().data, n});
  const auto placed = download(View<const std::uint32_t>{places.view().data, written});
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

constexpr std::uint32_t kParts[] = {1, 2, 4, 8};

TEST_F(CudaSearch, AnyOrderAndAnyPartsGiveAllPairs) {
  Random random(501);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(130, random);
    Search asked;
    asked.filters.resize(boxes.size());
    for (Filter& filter : asked.filters)
      filter = {1 << random.below(3), static_cast<int>(random.bits())};
    for (const std::uint32_t parts : kParts) {
      asked.parts = parts;
      const Found found = search(asked, boxes, inAnyOrder(boxes.size(), random));
      EXPECT_EQ(sorted(found.pairs), test::bruteForce(boxes, asked.filters)) << parts;
    }
  }
}

// 150 blocks along a line in five groups. Long boxes make some blocks meet all others, of which a
// list holds 64 at a time.
TEST_F(CudaSearch, ABlockMeetsMoreBlocksThanItsListHolds) {
  Random random(502);
  Boxes boxes;
  for (int i = 0; i < 4800; ++i)
    boxes.push_back(test::boxAt(2 * static_cast<float>(i), 0, 0, 0.5f));
  for (const std::size_t i : {7u, 40u, 1050u, 2000u, 4799u}) {
    boxes[i].min[0] = 1;
    boxes[i].max[0] = 9600;
  }
  const Pairs expected = test::bruteForce(boxes);
  for (const std::uint32_t parts : kParts) {
    Search asked;
    asked.parts = parts;
    EXPECT_EQ(sorted(search(asked, boxes, inOrder(boxes.size())).pairs), expected) << parts;
  }
}

// Some blocks overlap in their bounds only.
TEST_F(CudaSearch, ThirtyThreeGroupsAreSearched) {
  Boxes boxes(33 * 1024, Aabb{{1, 1, 1}, {0, 0, 0}});
  for (const std::size_t i : {0u, 31u, 1023u, 1024u, 32767u, 32768u, 33791u})
    boxes[i] = test::boxAt(5, 5, 5, 1);
  Search asked;
  asked.room = 1000;
  EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.pairs, 21u);
}

// 1,024 coincident boxes are 32 blocks, each of which meets all, and has all pairs with them.
TEST_F(CudaSearch, BlocksOfCoincidentBoxes) {
  for (const std::uint32_t parts : {1u, 8u}) {
    const Boxes boxes(1024, test::boxAt(0, 0, 0, 1));
    Search asked;
    asked.parts = parts;
    const Found found = search(asked, boxes, inOrder(boxes.size()));
    EXPECT_EQ(found.header.pairs, 523776u);
    EXPECT_TRUE(areTrueAndDifferent(found.pairs, test::bruteForce(boxes)));
  }
}

// 32 pillars stand on four plates: 128 pairs come at once, after few others. The warp is the last
// of its kernel's block, so that nothing lies behind its memory.
TEST_F(CudaSearch, AStageHoldsAHundredAndTwentyEightPairs) {
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
    asked.limit = others;  // as many as are written first: more are to come
    EXPECT_GT(search(asked, boxes, inOrder(boxes.size())).header.pairs, others);
  }
}

TEST_F(CudaSearch, RoomThatIsTooShortIsFilledAndAllAreCounted) {
  const Boxes boxes(200, test::boxAt(0, 0, 0, 1));
  const Pairs all = test::bruteForce(boxes);
  for (const std::uint32_t parts : kParts)
    for (const std::size_t room : {1, 127, 128, 129, 5000}) {
      Search asked;
      asked.parts = parts;
      asked.room = room;
      const Found found = search(asked, boxes, inOrder(boxes.size()));
      EXPECT_EQ(found.header.pairs, all.size());
      EXPECT_EQ(found.pairs.size(), room);
      EXPECT_TRUE(areTrueAndDifferent(found.pairs, all));
    }
}

// A limit stops each warp after the pairs that it holds; below it, nothing is lost.
TEST_F(CudaSearch, StopsBehindTheLimitAndNotAtIt) {
  const Boxes boxes(640, test::boxAt(0, 0, 0, 1));
  const Pairs all = test::bruteForce(boxes);
  for (const std::uint32_t parts : kParts) {
    Search asked;
    asked.parts = parts;
    asked.limit = all.size();
    EXPECT_EQ(search(asked, boxes, inOrder(boxes.size())).header.pairs, all.size());
    asked.limit = 1000;
    const Found found = search(asked, boxes, inOrder(boxes.size()));
    EXPECT_GT(found.header.pairs, asked.limit);
    EXPECT_LE(found.header.pairs, asked.limit + 2 * 128 * 20 * parts);
    EXPECT_TRUE(areTrueAndDifferent(found.pairs, all));
  }
}

// All blocks lie in order, or in none: then they are as long as the scene.
TEST_F(CudaSearch, ExtentsTellHowMuchAnOrderIsWorthAndBeyondThemNothingIsSearched) {
  Random random(503);
  Boxes boxes;
  for (int i = 0; i < 1500; ++i)
    boxes.push_back({{static_cast<float>(i), 0, 0}, {static_cast<float>(i + 1), 0, 0}});
  Search asked;
  asked.header.grid.perLength = 1 / 1500.0f;
  const Found good = search(asked, boxes, inOrder(boxes.size()));
  EXPECT_NEAR(static_cast<double>(good.header.extents), 65536, 47);
  asked.header.arguments.mostExtents = good.header.extents;
  EXPECT_GT(search(asked, boxes, inOrder(boxes.size())).header.looks, 0u) << "at the limit";
  const Found bad = search(asked, boxes, inAnyOrder(boxes.size(), random));
  EXPECT_GT(bad.header.extents, 30 * good.header.extents);
  EXPECT_EQ(bad.header.looks, 0u);
  EXPECT_EQ(bad.header.pairs, 0u);
  asked.header.arguments.mostExtents = ~std::uint64_t{0};
  EXPECT_GT(search(asked, boxes, inAnyOrder(boxes.size(), random)).header.looks,
            5 * good.header.looks);
}

// A grid that leaves out far boxes may be a small part of a block, and an oversized box makes one
// infinite: each counts as three lengths of the scene at most.
TEST_F(CudaSearch, ExtentsDoNotWrapAround) {
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
