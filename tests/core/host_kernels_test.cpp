// SPDX-License-Identifier: Zlib
// Tests the host's search with each set of SIMD instructions that this processor has. Pairs are
// exact for every kind of box set, with filters, and with long lists. Their order is the same for
// all thread counts.
#include "broadphase/host/simd/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "broadphase/core/hilbert.h"
#include "broadphase/core/morton.h"
#include "simd_test.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::bruteForce;
using test::Random;
using test::toVector;
using test::view;

using HostKernelsTest = test::SimdTest;

PairFinder finderOn(int threads) {
  Options options;
  options.backend = Backend::host;
  options.threads = threads;
  return PairFinder(options);
}

TEST_P(HostKernelsTest, EqualBruteForceAtTheBordersOfBlocks) {
  Random random(41);
  PairFinder finder = finderOn(1), finder3 = finderOn(3);
  for (const test::BoxSet& set : test::boxSets())
    for (const std::size_t n : {0u, 1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 700u}) {
      const Boxes boxes = set.make(n, random);
      const test::Pairs expected = bruteForce(boxes);
      finder.update(view(boxes));
      ASSERT_EQ(toVector(finder.pairs()), expected) << set.name << " " << n;
      finder3.update(view(boxes));
      ASSERT_EQ(toVector(finder3.pairs()), expected) << set.name << " " << n << ", 3 threads";
    }
}

TEST_P(HostKernelsTest, ApplyFilters) {
  Random random(42);
  PairFinder finder = finderOn(1);
  for (const test::BoxSet& set : test::boxSets()) {
    const Boxes boxes = set.make(300, random);
    std::vector<Filter> filters(boxes.size());
    for (Filter& filter : filters)
      filter = {1 << random.below(32), static_cast<std::int32_t>(random.bits())};
    finder.update(view(boxes), view(filters));
    ASSERT_EQ(toVector(finder.pairs()), bruteForce(boxes, filters)) << set.name;
  }
}

// Coordinates differ by tiny amounts, or have widely different magnitudes.
TEST_P(HostKernelsTest, AreExactForTinyHugeAndTouchingBoxes) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  Boxes boxes;
  for (const float x : {0.0f, -0.0f, tiny, 2 * tiny, -tiny, 1.0f, std::nextafter(1.0f, 2.0f),
                        std::nextafter(1.0f, 0.0f), 1e17f, -1e17f, 1e-38f, -1e-38f})
    for (const float y : {0.0f, tiny, 1.0f, 1e17f}) {
      boxes.push_back({{x, 0, 0}, {x, 0, 0}});
      if (x <= y) boxes.push_back({{x, -tiny, 0}, {y, 0, 0}});
    }
  PairFinder finder = finderOn(1);
  finder.update(view(boxes));
  EXPECT_EQ(toVector(finder.pairs()), bruteForce(boxes));
}

// The lengths are around the limits at which the sorting method changes. Some lists are longer than
// the buffers.
TEST_P(HostKernelsTest, SortLongLists) {
  for (const std::size_t n : {16u, 17u, 32u, 33u, 34u, 65u, 130u}) {
    const Boxes boxes(n, boxAt(0, 0, 0, 1));
    PairFinder finder = finderOn(1);
    finder.update(view(boxes));
    ASSERT_EQ(toVector(finder.pairs()), bruteForce(boxes)) << n;
  }
  Random random(43);
  Boxes boxes = test::boxSets()[0].make(9000, random);
  boxes[1] = boxAt(10, 10, 10, 100);  // overlaps all
  boxes[70] = boxAt(10, 10, 10, 8);
  const test::Pairs expected = bruteForce(boxes);
  for (const int threads : {1, 4}) {
    PairFinder finder = finderOn(threads);
    finder.update(view(boxes));
    ASSERT_TRUE(toVector(finder.pairs()) == expected) << threads;
  }
}

// Sorting reads and writes whole registers, but must never touch memory beyond the lists and the
// pairs.
TEST_P(HostKernelsTest, SortListsWithinTheirMemory) {
  Random random(47);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> room;
    std::vector<NeighbourList> byBox(12);
    test::Pairs expected;
    for (std::uint32_t box = 12; box-- > 0;) {  // so that the first list ends at the end of `room`
      byBox[box] = {room.size(), random.below(round % 2 == 0 ? 12 : 150)};
      for (std::uint32_t i = byBox[box].size; i-- > 0;) {
        room.push_back(20 + i * 3 + random.below(3));
        expected.push_back({box, room.back()});
      }
    }
    std::sort(expected.begin(), expected.end());
    std::vector<std::uint64_t> bits(65);
    std::vector<std::uint32_t> exactRoom(room);  // without spare capacity
    const NeighbourLists lists{{exactRoom.data(), exactRoom.size()}, byBox.data()};
    const Pair untouched{7, 7};
    test::Pairs out(expected.size() + 200, untouched);
    simdKernels().sortLists(lists, 0, 12, {bits.data() + 1, bits.data(), 1},
                            {out.data(), expected.size()});
    for (std::size_t i = expected.size(); i < out.size(); ++i) ASSERT_EQ(out[i], untouched);
    out.resize(expected.size());
    ASSERT_EQ(out, expected);
  }
}

TEST_P(HostKernelsTest, PairWithManyOversizedBoxes) {
  Random random(44);
  Boxes boxes = test::boxSets()[0].make(6000, random);
  for (std::size_t i = 0; i < 4500; ++i) boxes[i + 700] = boxAt(0, 2e18f, 0, 2e18f);
  boxes[20] = boxAt(0, 0, 0, 1e18f);
  PairFinder finder = finderOn(2);
  finder.update(view(boxes));
  EXPECT_EQ(finder.stats().oversizedBoxes, 4501u);
  EXPECT_TRUE(toVector(finder.pairs()) == bruteForce(boxes));
}

TEST_P(HostKernelsTest, KeepTheOrderForAllThreadCounts) {
  Random random(45);
  const Boxes boxes = test::boxSets()[0].make(30000, random);
  PairFinder one = finderOn(1);
  one.update(view(boxes));
  ASSERT_GT(one.pairs().size(), 150000u);
  for (const int threads : {2, 3, 4}) {
    PairFinder many = finderOn(threads);
    many.update(view(boxes));
    EXPECT_TRUE(toVector(many.pairs()) == toVector(one.pairs())) << threads;
  }
}

TEST_P(HostKernelsTest, MeasureTheSameSceneAsTheSharedStage) {
  Random random(46);
  for (const test::BoxSet& set : test::boxSets())
    for (const std::size_t n : {0u, 5u, 16u, 400u}) {
      const Boxes boxes = set.make(n, random);
      SceneBounds expected;
      for (std::uint32_t i = 0; i < n; ++i) expected += MeasureScene{view(boxes)}(i);
      const SceneBounds sum = simdKernels().measure(view(boxes), 0, n);
      EXPECT_EQ(std::memcmp(&sum, &expected, sizeof sum), 0) << set.name << " " << n;
    }
}

// A Hilbert curve visits every cell once. Consecutive cells are neighbours.
template <class Key>
void expectCurve(void (*assign)(View<const Aabb>, const Grid&, Key*, std::uint32_t*, std::size_t,
                                std::size_t)) {
  constexpr int kBits = AssignCodes<Key>::kCodeBits / 3;
  Grid grid;
  grid.perLength = std::ldexp(1.0f, -kBits);  // cells of length 1
  Boxes boxes;
  for (int i = 0; i < 16 * 16 * 16; ++i)
    boxes.push_back(boxAt(static_cast<float>(i / 256) + 0.5f,
                          static_cast<float>(i / 16 % 16) + 0.5f, static_cast<float>(i % 16) + 0.5f,
                          0.25f));
  std::vector<Key> keys(boxes.size());
  std::vector<std::uint32_t> ids(boxes.size());
  assign(view(boxes), grid, keys.data(), ids.data(), 0, boxes.size());
  std::sort(ids.begin(), ids.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
  for (std::size_t i = 1; i < ids.size(); ++i) {
    ASSERT_EQ(keys[ids[i]], keys[ids[i - 1]] + 1);
    float distance = 0;
    for (int axis = 0; axis < 3; ++axis)
      distance += std::abs(boxes[ids[i]].min[axis] - boxes[ids[i - 1]].min[axis]);
    ASSERT_EQ(distance, 1.0f) << i;
  }
}

TEST_P(HostKernelsTest, KeysFollowAHilbertCurve) {
  expectCurve(simdKernels().assignShortKeys);
  expectCurve(simdKernels().assignLongKeys);
}

// The upper bits of a long key are the key of a coarser grid.
TEST(Hilbert, CodesBeginWithCodesOfCoarserGrids) {
  Random random(23);
  for (int k = 0; k < 1000; ++k) {
    const std::uint32_t x = random.below(1 << 21), y = random.below(1 << 21),
                        z = random.below(1 << 21);
    const auto code = placeOnCurve<std::uint64_t, 21>(x, y, z);
    const auto coarse = placeOnCurve<std::uint64_t, 14>(x >> 7, y >> 7, z >> 7);
    ASSERT_EQ(code >> AssignCodes<std::uint64_t>::lowestBit(14), coarse);
  }
}

template <class Key>
void expectKeysOfSharedStage(const Boxes& boxes, const Grid& grid,
                             void (*assign)(View<const Aabb>, const Grid&, Key*, std::uint32_t*,
                                            std::size_t, std::size_t)) {
  const Key untouched = 7;
  for (const std::size_t begin : {0u, 3u})
    for (const std::size_t end : {boxes.size(), boxes.size() - 5, begin + 1, begin + 40}) {
      std::vector<Key> keys(boxes.size() + 40, untouched), expected(keys);
      std::vector<std::uint32_t> ids(keys.size(), 7), expectedIds(ids);
      const AssignHilbertCodes<Key> shared{view(boxes), &grid, expected.data(), expectedIds.data()};
      for (std::size_t i = begin; i < end; ++i) shared(static_cast<std::uint32_t>(i));
      assign(view(boxes), grid, keys.data(), ids.data(), begin, end);
      ASSERT_EQ(keys, expected) << begin << " " << end;
      ASSERT_EQ(ids, expectedIds) << begin << " " << end;
    }
}

// Some coordinates are edge cases of floating point, of the box classes, or of the grid.
TEST_P(HostKernelsTest, KeysAreThoseOfTheSharedStage) {
  using Limits = std::numeric_limits<float>;
  const float edges[] = {NAN,
                         Limits::infinity(),
                         -Limits::infinity(),
                         0.0f,
                         -0.0f,
                         Limits::denorm_min(),
                         -Limits::min(),
                         kGiant,
                         -kGiant,
                         std::nextafter(kGiant, 2 * kGiant),
                         std::nextafter(-kGiant, -2 * kGiant),
                         Limits::max(),
                         -Limits::max(),
                         -50.0f,
                         50.0f,
                         std::nextafter(50.0f, 0.0f)};
  Random random(48);
  for (const std::uint32_t odd : {0u, 1u, 30u}) {  // percentage of coordinates that are edge cases
    Boxes boxes(1000);
    for (Aabb& box : boxes)
      for (int k = 0; k < 6; ++k)
        (k < 3 ? box.min[k] : box.max[k - 3]) =
            random.below(100) < odd ? edges[random.below(16)] : random.uniform(-60, 60);
    for (const float perLength : {0.01f, 0.0f, 1e30f, 1e-30f}) {
      const Grid grid{{-50, -50, -50}, perLength, 10};
      expectKeysOfSharedStage(boxes, grid, simdKernels().assignShortKeys);
      expectKeysOfSharedStage(boxes, grid, simdKernels().assignLongKeys);
    }
  }
}

// Blocks must equal the blocks that BoxBlock::set() and clear() make, even if the last block is not
// full.
TEST_P(HostKernelsTest, PackBoxesAndBoundsIntoBlocks) {
  Random random(49);
  for (const std::uint32_t n : {1u, 15u, 16u, 17u, 50u, 256u}) {
    Boxes boxes(n);
    std::vector<std::uint32_t> ids(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      boxes[i] = boxAt(random.uniform(-9, 9), random.uniform(-9, 9), random.uniform(-9, 9), 1);
      if (i % 3 == 0) boxes[i].min[i % 2] = boxes[i].max[1 + i % 2] = -0.0f;
      ids[i] = n - 1 - i;
    }
    BlockTree tree;
    tree.boxes = n;
    tree.leafBlocks = BlockTree::blocksOver(n);
    std::vector<BoxBlock> blocks(tree.leafBlocks + 1), expected(blocks);
    tree.blocks = blocks.data();
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) expected.back().clear(lane);
    for (std::uint32_t leaf = 0; leaf < tree.leafBlocks * kLanes; ++leaf) {
      BoxBlock& block = expected[leaf / kLanes];
      if (leaf < n)
        block.set(leaf % kLanes, boxes[ids[leaf]], ids[leaf]);
      else
        block.clear(leaf % kLanes);
      for (int k = 0; k < 6 && leaf < n; ++k) {
        float& bound = expected.back().corners[k][leaf / kLanes];
        const float corner = block.corners[k][leaf % kLanes];
        bound = k < 3 ? std::min(bound, corner) : std::max(bound, corner);
      }
      expected.back().child[leaf / kLanes] = leaf / kLanes;
    }
    simdKernels().packLeaves({tree, view(boxes), {}, {}, {}}, ids.data(), 0, tree.leafBlocks);
    simdKernels().packParent(tree, tree.leafBlocks, 0, tree.leafBlocks);
    for (std::size_t b = 0; b < blocks.size(); ++b)
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        ASSERT_EQ(blocks[b].child[lane], expected[b].child[lane]) << n << " " << b << " " << lane;
        for (int k = 0; k < 6; ++k) {
          ASSERT_EQ(blocks[b].corners[k][lane], expected[b].corners[k][lane]) << n << " " << b;
          if (k >= 3 && blocks[b].corners[k][lane] == 0)
            ASSERT_FALSE(std::signbit(blocks[b].corners[k][lane])) << n << " " << b;
        }
      }
  }
}

TEST_P(HostKernelsTest, KeysSortOversizedAndNanBoxesLast) {
  const float inf = std::numeric_limits<float>::infinity();
  Boxes boxes(21, boxAt(3, 4, 5, 1));
  boxes[2].min[1] = NAN;
  boxes[18].max[0] = inf;
  std::vector<std::uint32_t> keys(boxes.size()), ids(boxes.size());
  simdKernels().assignShortKeys(view(boxes), Grid{}, keys.data(), ids.data(), 0, boxes.size());
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    EXPECT_EQ(keys[i], i == 2 ? 7u << 28 : i == 18 ? 6u << 28 : keys[0]) << i;
    EXPECT_EQ(ids[i], i);
  }
  EXPECT_LT(keys[0], 1u << 30);
}

INSTANTIATE_TEST_SUITE_P(Simd, HostKernelsTest, test::everySimd(), test::simdName);

TEST(SimdKernels, BestInstructionSetIsChosenByDefault) {
  const test::ScopedVariable simd("GPULBVH_SIMD", nullptr);
  const std::string best = simdKernels().name;
  simd.set("nonsense");
  EXPECT_STREQ(simdKernels().name, "baseline");
  for (const char* name : {"avx2", "avx512", "neon"}) {
    simd.set(name);
    if (simdKernels().name == std::string(name)) EXPECT_NE(best, "baseline");
  }
}

#if defined(__x86_64__)
// A hypervisor traps CPUID, which then takes longer than the rest of a constructor.
TEST(SimdKernels, ProcessorFeaturesAreReadOncePerProcess) {
  const test::ScopedVariable simd("GPULBVH_SIMD",
                                  nullptr);  // with "baseline" the features are not read
  for (int k = 0; k < 3; ++k) {
    finderOn(1);
    const PairFinder another{Options{}};
    EXPECT_EQ(simdKernels("neon"), nullptr);
  }
  EXPECT_EQ(timesProcessorWasAsked(), 1u);
}

// If a set could not be forced, all tests of that set would be skipped as unavailable.
TEST(SimdKernels, ForcedInstructionSetIsUsedIfTheProcessorHasIt) {
  const bool has2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  const bool has512 = has2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const test::ScopedVariable simd("GPULBVH_SIMD", nullptr);
  EXPECT_STREQ(simdKernels().name, has512 ? "avx512" : has2 ? "avx2" : "baseline");
  simd.set("avx2");
  EXPECT_STREQ(simdKernels().name, has2 ? "avx2" : "baseline");
  simd.set("avx512");
  EXPECT_STREQ(simdKernels().name, has512 ? "avx512" : "baseline");
  simd.set("baseline");
  EXPECT_STREQ(simdKernels().name, "baseline");
}
#elif defined(__aarch64__)
TEST(SimdKernels, NeonIsUsedOnArm) {
  const test::ScopedVariable simd("GPULBVH_SIMD", nullptr);
  EXPECT_STREQ(simdKernels().name, "neon");
}
#endif

}  // namespace
}  // namespace lbvh
