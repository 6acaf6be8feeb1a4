// SPDX-License-Identifier: Zlib
// Tests the tree: Karras's worked example, and invariants on thousands of key sets. The check of
// the invariants must find every kind of damage.
#include "broadphase/lbvh/hierarchy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "broadphase/host/parallel/space.h"
#include "support.h"
#include "tree_check.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;
using test::whyTreeIsWrong;

template <class Key>
std::vector<Node> build(const std::vector<Key>& codes, const Boxes& boxes, int threads = 1) {
  const auto n = static_cast<std::uint32_t>(codes.size());
  std::vector<Node> nodes(codes.empty() ? 0 : 2 * codes.size() - 1);
  std::vector<std::uint32_t> ids(codes.size());
  std::vector<std::uint32_t> arrivals(codes.size(), kNullIndex);
  std::iota(ids.begin(), ids.end(), 0u);
  HostSpace(threads).forEach(
      codes.size(),
      BuildHierarchy<Key>{view(boxes), ids.data(), codes.data(), n, arrivals.data(), nodes.data()});
  return nodes;
}

Boxes someBoxes(std::size_t n, Random& random) { return test::boxSets()[0].make(n, random); }

// Figure 3 of Karras 2012: 5-bit keys of 8 leaves. Inner node 0 splits [0, 7] at 3. Node 3 splits
// [0, 3] at 1, node 4 splits [4, 7] at 4, and node 5 splits [5, 7] at 6. Nodes 1, 2 and 6 are [0,
// 1], [2, 3] and [5, 6].
TEST(Hierarchy, IsKarrasWorkedExample) {
  const std::vector<std::uint32_t> codes{0b00001, 0b00010, 0b00100, 0b00101,
                                         0b10011, 0b11000, 0b11001, 0b11110};
  Random random(3);
  const Boxes boxes = someBoxes(codes.size(), random);
  const std::vector<Node> nodes = build(codes, boxes);
  const auto leaf = [](std::uint32_t k) { return 7 + k; };
  const std::vector<std::uint32_t> left{3, leaf(0), leaf(2), 1, leaf(4), 6, leaf(5)};
  const std::vector<std::uint32_t> rope{kNullIndex, 2, 4, 4, kNullIndex, kNullIndex, leaf(7)};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(nodes[i].left, left[i]) << "node " << i;
    EXPECT_EQ(nodes[i].rope, rope[i]) << "node " << i;
  }
  const std::vector<std::uint32_t> leafRope{leaf(1), 2,       leaf(3), 4,
                                            5,       leaf(6), leaf(7), kNullIndex};
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(nodes[7 + k].rope, leafRope[k]) << "leaf " << k;
    EXPECT_EQ(nodes[7 + k].box(), k);
  }
  EXPECT_EQ(whyTreeIsWrong(view(nodes), view(boxes)), "");
}

TEST(Hierarchy, TreesOfUpToTwoLeavesAreValid) {
  Random random(4);
  for (std::size_t n = 0; n <= 2; ++n) {
    const Boxes boxes = someBoxes(n, random);
    const auto nodes = build(std::vector<std::uint32_t>(n, 5), boxes);
    EXPECT_EQ(whyTreeIsWrong(view(nodes), view(boxes)), "") << n;
  }
}

// The largest difference of codes must not be mistaken for the end of the array. The highest bit
// of a 64-bit key is set for large and oversized boxes.
TEST(Hierarchy, TreesOfSmallestAndLargestCodesAreValid) {
  Random random(9);
  const Boxes boxes = someBoxes(3, random);
  const std::uint64_t last = (std::uint64_t{1} << 63) - 1;
  for (const auto& codes :
       {std::vector<std::uint64_t>{0, last}, std::vector<std::uint64_t>{0, last, last},
        std::vector<std::uint64_t>{0, 0, last}, std::vector<std::uint64_t>{last, last + 1},
        std::vector<std::uint64_t>{0, ~std::uint64_t{0}}}) {
    const Boxes used(boxes.begin(), boxes.begin() + static_cast<long>(codes.size()));
    const auto nodes = build(codes, used);
    EXPECT_EQ(whyTreeIsWrong(view(nodes), view(used)), "");
  }
}

// The splits determine the whole topology. A range is split at the highest bit in which its codes
// differ. If the codes are equal, it is split at the highest bit in which its positions differ. The
// check works from the root down, independently of the builder.
template <class Key>
int splitOf(const std::vector<Key>& codes, int first, int last) {
  const auto differ = [&](int a, int b) {
    const auto x = static_cast<std::uint64_t>(codes[static_cast<std::size_t>(a)] ^
                                              codes[static_cast<std::size_t>(b)]);
    return x != 0 ? std::pair<int, std::uint64_t>{1, std::bit_floor(x)}
                  : std::pair<int, std::uint64_t>{0, std::bit_floor(static_cast<unsigned>(a ^ b))};
  };
  int split = first;
  while (split + 1 < last && differ(first, split + 1) < differ(first, last)) ++split;
  return split;
}

template <class Key>
void expectTopology(const std::vector<Node>& nodes, const std::vector<Key>& codes) {
  const int n = static_cast<int>(codes.size());
  struct Range {
    int node, first, last;
  };
  std::vector<Range> stack{{0, 0, n - 1}};
  while (!stack.empty()) {
    const Range range = stack.back();
    stack.pop_back();
    if (range.first == range.last) continue;
    const int split = splitOf(codes, range.first, range.last);
    const int left = split == range.first ? n - 1 + split : split;
    ASSERT_EQ(nodes[static_cast<std::size_t>(range.node)].left, left);
    const int right = nodes[static_cast<std::size_t>(left)].rope;
    stack.push_back({left, range.first, split});
    stack.push_back({right, split + 1, range.last});
  }
}

template <class Key>
void expectInvariants(std::size_t n, int distinct, Key scale, Random& random) {
  std::vector<Key> codes(n);
  for (Key& code : codes)
    code = static_cast<Key>(random.below(static_cast<std::uint32_t>(distinct))) * scale;
  std::sort(codes.begin(), codes.end());
  const Boxes boxes = someBoxes(n, random);
  const auto nodes = build(codes, boxes);
  ASSERT_EQ(whyTreeIsWrong(view(nodes), view(boxes)), "")
      << n << " leaves, " << distinct << " codes";
  if (n > 0) expectTopology(nodes, codes);
}

TEST(Hierarchy, InvariantsHoldOnThousandsOfKeySets) {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = 1 + random.below(round % 50 == 0 ? 700 : 40);
    const int distinct = 1 << random.below(12);
    expectInvariants<std::uint32_t>(n, distinct, 1 + random.below(1u << 18), random);
    expectInvariants<std::uint64_t>(n, distinct, std::uint64_t{random.bits()} << 21, random);
    expectInvariants<std::uint64_t>(n, distinct, 1, random);
  }
}

TEST(Hierarchy, EqualCodesGiveABalancedTree) {
  Random random(6);
  const Boxes boxes = someBoxes(1024, random);
  const auto nodes = build(std::vector<std::uint32_t>(1024, 42), boxes);
  ASSERT_EQ(whyTreeIsWrong(view(nodes), view(boxes)), "");
  int depth = 0;
  for (std::uint32_t at = 0; !nodes[static_cast<std::size_t>(at)].isLeaf(); ++depth)
    at = nodes[static_cast<std::size_t>(at)].left;
  EXPECT_EQ(depth, 10);
}

TEST(Hierarchy, IsTheSameForEveryThreadCount) {
  Random random(7);
  const std::size_t n = 60000;
  const Boxes boxes = someBoxes(n, random);
  std::vector<std::uint32_t> codes(n);
  for (auto& code : codes) code = random.below(1u << 14);
  std::sort(codes.begin(), codes.end());
  const auto expected = build(codes, boxes);
  for (int run = 0; run < 10; ++run) {
    const auto nodes = build(codes, boxes, 2 + run % 3);
    ASSERT_EQ(std::memcmp(nodes.data(), expected.data(), nodes.size() * sizeof(Node)), 0);
  }
}

TEST(Validate, FindsEachKindOfDamage) {
  Random random(8);
  const Boxes boxes = someBoxes(50, random);
  std::vector<std::uint32_t> codes(50);
  std::iota(codes.begin(), codes.end(), 0u);
  const auto good = build(codes, boxes);
  ASSERT_EQ(whyTreeIsWrong(view(good), view(boxes)), "");
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int damage = 0; damage < 4; ++damage) {
      auto nodes = good;
      if (damage == 0) nodes[i].max[1] += 1;
      if (damage == 1) nodes[i].min[2] = NAN;
      if (damage == 2) nodes[i].left += nodes[i].isLeaf() ? -100 : 1;
      if (damage == 3) nodes[i].rope = nodes[i].rope == kNullIndex ? 3 : nodes[i].rope + 1;
      EXPECT_NE(whyTreeIsWrong(view(nodes), view(boxes)), "")
          << "node " << i << " damage " << damage;
    }
  }
}

}  // namespace
}  // namespace lbvh
