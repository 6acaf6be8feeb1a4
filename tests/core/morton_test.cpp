// SPDX-License-Identifier: Zlib
// Compares Morton codes with values computed by hand, and tests the rules for the grid and the code
// length.
#include "broadphase/core/morton.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "broadphase/core/grid.h"
#include "broadphase/core/hilbert.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::view;

TEST(Morton, SpreadsBitsToEveryThirdBit) {
  EXPECT_EQ(spreadBits10(0u), 0u);
  EXPECT_EQ(spreadBits10(1u), 1u);
  EXPECT_EQ(spreadBits10(2u), 8u);
  EXPECT_EQ(spreadBits10(0b11u), 0b1001u);
  EXPECT_EQ(spreadBits10(1023u), 0b001001001001001001001001001001u);
  EXPECT_EQ(spreadBits21(1u << 20), std::uint64_t{1} << 60);
  EXPECT_EQ(spreadBits21((1u << 21) - 1), 0x1249249249249249u);
}

TEST(Morton, InterleavesXYZ) {
  // x = 5 = 0101, y = 9 = 1001, z = 1 = 0001. Bits of x, y and z from the top: 010 100 000 111.
  EXPECT_EQ(morton30(5, 9, 1), 0b010100000111u);
  EXPECT_EQ(morton63(5, 9, 1), 0b010100000111u);
  EXPECT_EQ(morton30(1023, 0, 0), 0b100100100100100100100100100100u);
  EXPECT_EQ(morton30(0, 1023, 0), 0b010010010010010010010010010010u);
  EXPECT_EQ(morton30(1023, 1023, 1023), (1u << 30) - 1);
  EXPECT_EQ(morton63((1u << 21) - 1, (1u << 21) - 1, (1u << 21) - 1), (std::uint64_t{1} << 63) - 1);
}

TEST(Morton, EveryBitGoesToItsPlace) {
  for (int bit = 0; bit < 21; ++bit) {
    EXPECT_EQ(spreadBits21(std::uint64_t{1} << bit), std::uint64_t{1} << (3 * bit));
    if (bit < 10) EXPECT_EQ(spreadBits10(1u << bit), 1u << (3 * bit));
  }
}

TEST(Morton, ClassifiesBoxes) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(classify({{0, 0, 0}, {0, 0, 0}}), BoxClass::ordinary);
  EXPECT_EQ(classify({{-kGiant, 0, 0}, {kGiant, 1, 1}}), BoxClass::ordinary);
  EXPECT_EQ(classify({{0, 1, 0}, {1, 0, 1}}), BoxClass::ordinary) << "inverted";
  EXPECT_EQ(classify({{1e18f, 1e18f, inf}, {-1e18f, -1e18f, -inf}}), BoxClass::ordinary);
  EXPECT_EQ(classify({{-1e18f, -1e18f, -1e18f}, {1e18f, 1e18f, 1e18f}}), BoxClass::oversized);
  EXPECT_EQ(classify({{0, 0, 0}, {1, inf, 1}}), BoxClass::oversized);
  EXPECT_EQ(classify({{0, 0, 0}, {1, 1, nan}}), BoxClass::nan);
  EXPECT_EQ(classify({{nan, 0, 0}, {inf, 1, 1}}), BoxClass::nan);
}

SceneBounds measure(const Boxes& boxes) {
  SceneBounds scene;
  for (std::uint32_t i = 0; i < boxes.size(); ++i) scene += MeasureScene{view(boxes)}(i);
  return scene;
}

Grid gridOf(const Boxes& boxes) {
  StepHeader header;
  header.scene = measure(boxes);
  const StepArguments arguments{boxes.size(), 0};
  ChooseGrid{view(boxes), &arguments, &header}(0);
  return header.grid;
}

TEST(Grid, CoversTheCentresAndClampsOutside) {
  const Boxes boxes{boxAt(0, 0, 0, 1), boxAt(1024, 512, 0, 1)};
  const Grid grid = gridOf(boxes);
  ASSERT_EQ(grid.bits, 10);
  EXPECT_EQ(grid.cell(0, 0, grid.bits), 0u);
  EXPECT_EQ(grid.cell(1.5f, 0, grid.bits), 1u);
  EXPECT_EQ(grid.cell(1024, 0, grid.bits), 1023u);
  EXPECT_EQ(grid.cell(512, 1, grid.bits), 512u) << "cells are cubes";
  EXPECT_EQ(grid.cell(-7, 0, grid.bits), 0u);
  EXPECT_EQ(grid.cell(1e30f, 0, grid.bits), 1023u);
}

TEST(Grid, WithoutExtentHasOneCell) {
  const Grid grid = gridOf({boxAt(3, 4, 5, 1), boxAt(3, 4, 5, 2)});
  EXPECT_EQ(grid.cell(3, 0, grid.bits), 0u);
  EXPECT_EQ(grid.cell(1e9f, 1, grid.bits), 0u);
}

TEST(Grid, OversizedAndNanBoxesDoNotCount) {
  const Boxes boxes{boxAt(0, 0, 0, 1),
                    boxAt(8, 8, 8, 1),
                    boxAt(0, 0, 0, 1e18f),
                    boxAt(1e20f, 0, 0, 1),
                    {{NAN, 0, 0}, {1, 1, 1}}};
  const SceneBounds scene = measure(boxes);
  EXPECT_EQ(scene.ordinary, 2u);
  EXPECT_EQ(scene.oversized, 2u);
  EXPECT_EQ(scene.nan, 1u);
  EXPECT_EQ(scene.hi[0], 8);
  const Grid grid = gridOf(boxes);
  const AssignCodes<std::uint32_t> codes{view(boxes), &grid, nullptr, nullptr, nullptr};
  EXPECT_LT(codes.key(boxes[1]), 1u << 30);
  EXPECT_EQ(codes.key(boxes[2]), 6u << 28);
  EXPECT_EQ(codes.key(boxes[4]), 7u << 28);
}

// The boxes have sides of 1, so a side of 16 is large.
template <class Codes>
void expectLayers(const Codes& codes, const Boxes& boxes) {
  using Key = decltype(codes.key(boxes[0]));
  constexpr Key kLarge = Key{1} << AssignCodes<Key>::kCodeBits;
  const std::size_t n = boxes.size();
  EXPECT_LT(codes.key(boxes[n - 5]), kLarge) << "nearly large";
  const Key large = codes.key(boxes[n - 4]), other = codes.key(boxes[n - 3]);
  EXPECT_GE(large, kLarge);
  EXPECT_LT(large, other) << "along the curve";
  EXPECT_EQ(other - kLarge, codes.key(boxes[99]) >> 2) << "the place of a smaller box";
  EXPECT_LT(other, codes.key(boxes[n - 2])) << "oversized";
  EXPECT_LT(codes.key(boxes[n - 2]), codes.key(boxes[n - 1])) << "NaN";
}

TEST(Grid, LargeBoxesAreALayerBehindTheOthers) {
  const float inf = std::numeric_limits<float>::infinity();
  Boxes boxes;
  for (int i = 0; i < 100; ++i) boxes.push_back(boxAt(static_cast<float>(i), 0, 0, 0.5f));
  boxes.push_back(boxAt(50, 0, 0, 7.9f));
  boxes.push_back({{1, -0.5f, -8}, {2, 0.5f, 8}});
  boxes.push_back(boxAt(99, 0, 0, 8));
  boxes.push_back({{0, 0, 0}, {inf, 1, 1}});
  boxes.push_back({{NAN, 0, 0}, {1, 1, 1}});
  const Grid grid = gridOf(boxes);
  EXPECT_EQ(grid.largeFrom, 16);
  expectLayers(AssignCodes<std::uint32_t>{view(boxes), &grid, nullptr, nullptr, nullptr}, boxes);
  expectLayers(AssignCodes<std::uint64_t>{view(boxes), &grid, nullptr, nullptr, nullptr}, boxes);
  expectLayers(AssignHilbertCodes<std::uint32_t>{view(boxes), &grid, nullptr, nullptr}, boxes);
  expectLayers(AssignHilbertCodes<std::uint64_t>{view(boxes), &grid, nullptr, nullptr}, boxes);
}

// A sort ignores the key bits below the bits of the grid, but a tree is built from whole keys. So
// these bits must be 0.
TEST(Grid, KeysHaveNoBitsBelowTheGrid) {
  const Boxes boxes{boxAt(0, 0, 0, 1), boxAt(70, 60, 50, 1), boxAt(70, 60, 50, 40)};
  Grid grid = gridOf(boxes);
  grid.largeFrom = 10;
  const AssignCodes<std::uint64_t> codes{view(boxes), &grid, nullptr, nullptr, nullptr, 14};
  const std::uint64_t below = (std::uint64_t{1} << codes.lowestBit(14)) - 1;
  for (const Aabb& box : boxes) EXPECT_EQ(codes.key(box) & below, 0u);
  EXPECT_GT(codes.key(boxes[2]), codes.key(boxes[1]));
}

TEST(Grid, KeysOfWorldsHaveTheWorldAboveTheLayer) {
  const float inf = std::numeric_limits<float>::infinity();
  const Boxes boxes{
      {{NAN, 0, 0}, {1, 1, 1}}, boxAt(9, 9, 9, 50), {{0, 0, 0}, {inf, 1, 1}}, boxAt(9, 9, 9, 1)};
  Grid grid = gridOf({boxAt(0, 0, 0, 1), boxAt(10, 10, 10, 1)});
  grid.largeFrom = 10;
  const int rankBits = 3;
  for (const int gridBits : {10, 21}) {
    const int codeBits = AssignWorldKeys::codeBitsFor(gridBits, rankBits);
    EXPECT_LE(codeBits + rankBits, 64);
    std::uint64_t keys[4], last = 0;
    std::uint32_t ids[4];
    for (const std::uint32_t rank : {0u, 1u, 4u}) {
      const std::uint32_t ranks[] = {rank, rank, rank, rank};
      const AssignWorldKeys assign{view(boxes), ranks, &grid, codeBits, keys, ids};
      for (std::uint32_t i = 0; i < 4; ++i) assign(i);
      for (const std::uint64_t key : {keys[3], keys[1], keys[2], keys[0]}) {
        EXPECT_GT(key, last) << rank << " " << gridBits;
        last = key;
      }
    }
  }
}

TEST(Grid, LongCodesForWideScenes) {
  // With boxes of length 2 (exponent 1), a 10-bit grid is used if its cells are shorter than 4.
  EXPECT_EQ(gridOf({boxAt(0, 0, 0, 1), boxAt(4095, 0, 0, 1)}).bits, 10);
  EXPECT_EQ(gridOf({boxAt(0, 0, 0, 1), boxAt(4096, 0, 0, 1)}).bits, 14);
  EXPECT_EQ(gridOf({boxAt(0, 0, 0, 1), boxAt(65535, 0, 0, 1)}).bits, 14);
  EXPECT_EQ(gridOf({boxAt(0, 0, 0, 1), boxAt(65536, 0, 0, 1)}).bits, 21);
}

TEST(Grid, OneOutlierDoesNotCoarsenIt) {
  Boxes boxes;
  for (int i = 0; i < 1000; ++i) boxes.push_back(boxAt(static_cast<float>(i), 0, 0, 1));
  for (int axis = 0; axis < 3; ++axis) {  // along the row, and across it
    Boxes with = boxes;
    with[500].min[axis] = with[500].max[axis] = -1e9f;
    const Grid grid = gridOf(with);
    EXPECT_NE(grid.cell(100, 0, grid.bits), grid.cell(200, 0, grid.bits));
    EXPECT_EQ(grid.cell(-1e9f, axis, grid.bits), 0u);
  }
}

TEST(Grid, InvertedBoxesAreOrdinaryButNotMeasured) {
  const SceneBounds one = measure({boxAt(0, 0, 0, 1)});
  const SceneBounds both = measure({boxAt(0, 0, 0, 1), {{3e8f, 3e8f, 3e8f}, {1e8f, 1e8f, 1e8f}}});
  EXPECT_EQ(both.ordinary, 2u);
  EXPECT_EQ(both.measured, 1u);
  EXPECT_EQ(both.exponents, one.exponents);
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(both.lo[axis], one.lo[axis]);
    EXPECT_EQ(both.hi[axis], one.hi[axis]);
  }
}

// The sample that is used to find outliers has only ordinary boxes.
TEST(Grid, OversizedInvertedAndNanBoxesAreNotSampled) {
  Boxes boxes;
  for (int i = 0; i < 1000; ++i) boxes.push_back(boxAt(static_cast<float>(i), 0, 0, 1));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (i % 8 == 1) boxes[i] = boxAt(3e18f, 0, 0, 1e18f);
    if (i % 8 == 2) boxes[i] = {{3e8f, 3e8f, 3e8f}, {1e8f, 1e8f, 1e8f}};
    if (i % 8 == 3) boxes[i] = boxAt(NAN, 0, 0, 1);
  }
  boxes[504] = boxAt(-1e9f, 0, 0, 1);
  const Grid grid = gridOf(boxes);
  EXPECT_NE(grid.cell(100, 0, grid.bits), grid.cell(200, 0, grid.bits));
}

TEST(Grid, KeepsAWideSceneThatLongCodesResolve) {
  Boxes boxes;
  for (int i = 0; i < 1000; ++i)
    boxes.push_back(boxAt(
        i % 5 == 0 ? 20.0f * static_cast<float>(i) : 0.001f * static_cast<float>(i), 0, 0, 0.01f));
  const Grid grid = gridOf(boxes);
  EXPECT_EQ(grid.bits, 21);
  EXPECT_NE(grid.cell(19000, 0, 21), grid.cell(19900, 0, 21));
}

/// The reciprocal of the length of a denormal scene overflows to infinity.
TEST(Grid, ResolvesDenormalCoordinates) {
  for (const float scale : {1.0f, 1e-40f, 1e-41f}) {
    test::Random random(5);
    Boxes boxes;
    const auto place = [&] { return scale * random.uniform(0, 20); };
    for (int i = 0; i < 2000; ++i) {
      const float x = place(), y = place(), z = place();
      boxes.push_back({{x, y, z}, {x + scale, y + scale, z + scale}});
    }
    const Grid grid = gridOf(boxes);
    std::set<std::array<std::uint32_t, 3>> cells;
    for (const Aabb& box : boxes) {
      std::array<std::uint32_t, 3> cell;
      for (int axis = 0; axis < 3; ++axis)
        cell[static_cast<std::size_t>(axis)] = grid.cell(centre(box, axis), axis, grid.bits);
      cells.insert(cell);
    }
    EXPECT_GT(cells.size(), 1900u) << scale;
  }
}

}  // namespace
}  // namespace lbvh
