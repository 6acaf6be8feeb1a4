// SPDX-License-Identifier: Zlib
// Tests that a View can be used like the containers and spans of the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "broadphase/pair_finder.h"
#include "support.h"

namespace lbvh {
namespace {

using Numbers = View<int>;
using ReadNumbers = View<const int>;

static_assert(std::ranges::contiguous_range<Numbers> && std::ranges::sized_range<Numbers>);
#if defined(__cpp_lib_ranges)  // libc++ 14 has only a part of <ranges>
static_assert(std::ranges::borrowed_range<Numbers> && std::ranges::borrowed_range<ReadNumbers>);
#endif
static_assert(std::is_convertible_v<Numbers, std::span<int>>);
static_assert(std::is_convertible_v<Numbers, std::span<const int>>);
static_assert(std::is_convertible_v<ReadNumbers, std::span<const int>>);
static_assert(!std::is_convertible_v<ReadNumbers, std::span<int>>);
static_assert(std::is_convertible_v<Numbers, ReadNumbers>);
static_assert(!std::is_convertible_v<ReadNumbers, Numbers>);
static_assert(std::is_same_v<decltype(Numbers{}.size()), std::size_t>);
static_assert(std::is_same_v<decltype(ReadNumbers{}.data()), const int*>);
static_assert(std::is_trivially_copyable_v<Numbers>, "kernels get views by value");
static_assert(sizeof(Numbers) == sizeof(int*) + sizeof(std::size_t));

constexpr int kNumbers[] = {3, 1, 2};
constexpr View kSeen{kNumbers, 3};
static_assert(kSeen.size() == 3 && kSeen.data() == kNumbers && kSeen[2] == 2);
static_assert(kSeen.first(2).size() == 2 && kSeen.first(2).data() == kNumbers);
static_assert(ReadNumbers{}.empty() && ReadNumbers{}.data() == nullptr && !kSeen.empty());

int sum(std::span<const int> numbers) {
  int all = 0;
  for (const int number : numbers) all += number;
  return all;
}

TEST(View, IsPassedWhereASpanIsExpected) {
  std::vector<int> numbers = {3, 1, 2};
  const Numbers seen{numbers.data(), numbers.size()};
  EXPECT_EQ(sum(seen), 6);
  EXPECT_EQ(sum(seen.first(2)), 4);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(std::size(seen), 3u);
  EXPECT_EQ(std::data(seen), numbers.data());
}

TEST(View, ItsIteratorsOutliveIt) {
#if defined(__cpp_lib_ranges)
  const test::Boxes boxes = test::rowOfBoxes(50);
  PairFinder finder;
  finder.update(test::view(boxes));
  EXPECT_EQ(finder.pairs().size(), 49u);
  const auto found = std::ranges::find(finder.pairs(), Pair{7, 8});
  EXPECT_EQ(found, finder.pairs().begin() + 7);
  const std::span<const Pair> pairs = finder.pairs();
  EXPECT_EQ(test::Pairs(pairs.begin(), pairs.end()), test::bruteForce(boxes));
#else
  GTEST_SKIP() << "this standard library has no std::ranges::find";
#endif
}

}  // namespace
}  // namespace lbvh
