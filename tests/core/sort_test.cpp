// SPDX-License-Identifier: Zlib
// Compares the host's radix sort with std::stable_sort, for many key widths, sizes and thread
// counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "broadphase/host/parallel/space.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Random;

template <class T>
View<T> all(std::vector<T>& v) {
  return {v.data(), v.size()};
}

template <class Key>
void expectStableSort(std::size_t n, int bits, int threads, Random& random) {
  const Key mask = bits == 8 * sizeof(Key) ? ~Key{0} : (Key{1} << bits) - 1;
  std::vector<Key> keys(n), spareKeys(n);
  std::vector<std::uint32_t> values(n), spareValues(n);
  // There are few different keys, so that a lack of stability shows.
  for (Key& key : keys) key = (static_cast<Key>(random.below(50)) * Key{0x9E3779B9u} << 7) & mask;
  std::iota(values.begin(), values.end(), 0u);
  std::vector<std::uint32_t> expected = values;
  const std::vector<Key> before = keys;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return before[a] < before[b]; });

  HostSpace space(threads);
  space.sortByKey(all(keys), all(values), all(spareKeys), all(spareValues), 0, bits);
  ASSERT_EQ(values, expected) << n << " keys of " << bits << " bits on " << threads << " threads";
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(keys[i], before[expected[i]]);
}

TEST(Sort, IsStableForEveryWidthAndThreadCount) {
  Random random(1);
  for (const int threads : {1, 2, 4})
    for (const std::size_t n : {0u, 1u, 2u, 1000u, 40000u}) {
      for (const int bits : {1, 10, 11, 12, 31, 32})
        expectStableSort<std::uint32_t>(n, bits, threads, random);
      for (const int bits : {33, 63, 64}) expectStableSort<std::uint64_t>(n, bits, threads, random);
    }
}

TEST(Sort, OrdersIndicesLikeAStableSort) {
  Random random(3);
  for (const int threads : {1, 3})
    for (const std::size_t n : {0u, 1u, 2u, 1000u, 40000u})
      for (const std::uint32_t distinct : {1u, 50u, 1u << 31}) {
        std::vector<std::uint32_t> keys(n), order(n), expected(n);
        std::vector<std::uint64_t> spare(2 * n);
        for (auto& key : keys) key = random.below(distinct);
        std::iota(expected.begin(), expected.end(), 0u);
        std::stable_sort(expected.begin(), expected.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
        HostSpace space(threads);
        space.radixSort().order(space.tasks(), test::view(keys), order.data(), spare.data(),
                                spare.data() + n, 0, 31);
        ASSERT_EQ(order, expected) << n << " keys, " << distinct << ", " << threads << " threads";
      }
}

// Up to 32 words are sorted by insertion.
TEST(Sort, SortsFewAndManyWordsLikeAStableSort) {
  Random random(4);
  HostSpace space(2);
  for (const std::size_t n : {0u, 1u, 2u, 31u, 32u, 33u, 3000u})
    for (const int bits : {1, 7, 33, 64})
      for (const int shift : {0, 11, 64 - bits}) {
        if (shift + bits > 64) continue;
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
        std::vector<std::uint64_t> words(n);
        for (auto& word : words) word = std::uint64_t{random.bits()} << 32 | random.bits();
        std::vector<std::uint64_t> expected = words;
        std::stable_sort(expected.begin(), expected.end(), [=](std::uint64_t a, std::uint64_t b) {
          return (a >> shift & mask) < (b >> shift & mask);
        });
        const std::uint64_t* const sorted =
            space.radixSort().words(space.tasks(), all(words), shift, bits);
        EXPECT_EQ(std::vector<std::uint64_t>(sorted, sorted + n), expected)
            << n << " words, " << bits << " bits from bit " << shift;
      }
}

TEST(Sort, SortsByRequestedBitsOnly) {
  std::vector<std::uint32_t> keys{0xFFFF0002u, 1u, 0xABCD0000u}, spare(3), values{7, 8, 9},
      spareV(3);
  HostSpace(1).sortByKey(all(keys), all(values), all(spare), all(spareV), 0, 16);
  EXPECT_EQ(values, (std::vector<std::uint32_t>{9, 8, 7}));

  std::vector<std::uint64_t> codes{5ull << 21 | 1, 5ull << 21, 1ull << 63, 3ull << 62,
                                   4ull << 21 | 9},
      spareCodes(5);
  std::vector<std::uint32_t> ids{0, 1, 2, 3, 4}, spareIds(5);
  HostSpace(1).sortByKey(all(codes), all(ids), all(spareCodes), all(spareIds), 21, 43);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{4, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace lbvh
