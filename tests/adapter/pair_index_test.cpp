// SPDX-License-Identifier: Zlib
// Tests the hash table in which our own pair cache looks up the index of a pair, and the growing
// array that stores the table.
#include "integration/pair_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <vector>

#include "support.h"

namespace {

using lbvh::test::Random;

// The model is an array in which the last pair replaces a removed pair, as in Bullet. The index
// grows beyond many powers of two, and shrinks again.
TEST(PairIndex, FindsTheIndexOfEveryPair) {
  Random random(91);
  GpuLbvhPairIndex index;
  std::vector<lbvh::Pair> array;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t some = random.below(200);
    index.reserve(some);
    for (std::uint32_t i = 0; i < some; ++i) {
      const lbvh::Pair pair = lbvh::makePair(random.below(300), 300 + random.below(300));
      if (index.find(pair) != lbvh::kNullIndex) continue;
      index.push(pair);
      array.push_back(pair);
    }
    const std::uint32_t fewer = round % 100 < 60 ? random.below(100) : random.below(400);
    for (std::uint32_t i = 0; i < fewer && !array.empty(); ++i) {
      const std::uint32_t place = random.below(static_cast<std::uint32_t>(array.size()));
      const lbvh::Pair gone = array[place];
      ASSERT_EQ(index.takeOut(index.linkTo(gone)), place);
      ASSERT_EQ(index.find(gone), lbvh::kNullIndex);
      array[place] = array.back();
      array.pop_back();
    }
    if (random.below(3) == 0) index.giveBackMemory();
    ASSERT_EQ(index.size(), array.size());
    for (std::uint32_t place = 0; place < array.size(); ++place) {
      ASSERT_EQ(index.find(array[place]), place) << round;
      ASSERT_EQ(index[place], array[place]) << round;
    }
  }
}

TEST(PairIndex, IsEmptyBeforeMemoryIsReserved) {
  const GpuLbvhPairIndex index;
  EXPECT_EQ(index.find({1, 2}), lbvh::kNullIndex);
  EXPECT_EQ(index.size(), 0u);
}

TEST(GrowingArray, KeepsItsElementsWhileItGrows) {
  GpuLbvhGrowingArray<std::uint32_t> array;
  for (std::uint32_t i = 0; i < 3000000; ++i) {
    array.reserve(i + 1);
    ASSERT_GE(array.capacity(), i + 1);
    array.push_back(3 * i);
  }
  for (std::uint32_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], 3 * i);
  array.pop_back();
  EXPECT_EQ(array.back(), 3 * (array.size() - 1));
}

TEST(GrowingArray, KeepsItsElementsWhileItShrinks) {
  GpuLbvhGrowingArray<std::uint32_t> array;
  for (const std::uint32_t size : {0u, 100u, 40000u, 1000u, 900000u, 30000u, 29999u, 3u}) {
    array.reserve(size);
    while (array.size() > size) array.pop_back();
    while (array.size() < size) array.push_back(3 * static_cast<std::uint32_t>(array.size()));
    const std::uint32_t* const before = array.data();
    array.shrink(size);
    EXPECT_EQ(array.data(), before) << size;
    EXPECT_GE(array.capacity(), size);
#if defined(__linux__)
    EXPECT_LE(array.capacity(), size + size / 4 + 65536 / sizeof(std::uint32_t)) << size;
#endif
    for (std::uint32_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], 3 * i) << size;
  }
}

TEST(GrowingArray, IsUnchangedAfterAFailedAllocation) {
  GpuLbvhGrowingArray<std::uint32_t> array;
  array.reserve(10);
  array.push_back(7);
  const std::size_t capacity = array.capacity();
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW(array.reserve(kMax / 6), std::bad_alloc);  // more than any system has
  EXPECT_THROW(array.reserve(kMax), std::bad_alloc);      // its size in bytes overflows
  EXPECT_EQ(array.capacity(), capacity);
  EXPECT_EQ(array[0], 7u);
}

}  // namespace
