// SPDX-License-Identifier: Zlib
// Checks every variant on the host and on the GPU. Trees must equal those of the recursive builder
// node for node. Pairs must equal those of brute force. Sorted values must equal those of a stable
// sort. Run by variants_test.cpp and cuda_variants_test.cu.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/catalogue/catalogue.h"
#include "benchmarks/catalogue/workbench.h"
#include "broadphase/host/parallel/space.h"
#include "support.h"

namespace lbvh {

/// Copies an array to the host. There are overloads for HostSpace and CudaSpace.
template <class T>
std::vector<T> download(HostSpace&, View<const T> there) {
  return {there.begin(), there.end()};
}

}  // namespace lbvh

namespace lbvh::variants {

using test::Boxes;
using test::Pairs;
using test::view;

inline std::vector<Node> referenceTree(const Boxes& boxes) {
  Workbench<CatalogueHost> bench(1);
  bench.prepare(view(boxes));
  BuildProblem<CatalogueHost> problem = bench.buildProblem();
  buildRecursively(problem);
  const std::size_t nodes = problem.n == 0 ? 0 : 2 * std::size_t{problem.n} - 1;
  return {problem.nodes, problem.nodes + nodes};
}

/// Renumbers a tree from the root down, from Apetrei's numbers to THE INDEX RULE (types.h).
struct Relabel {
  const std::vector<Node>& from;
  std::vector<Node>& to;
  std::uint32_t n;

  void operator()(std::uint32_t at, std::uint32_t number, Range range, std::uint32_t rope) const {
    const Node& node = from[static_cast<std::size_t>(at)];
    Node& out = to[static_cast<std::size_t>(number)];
    out = node;
    out.rope = rope;
    if (node.isLeaf()) return;
    const Numbering tree{n};
    const std::uint32_t left = tree.leftChild(range.first, at),
                        right = tree.rightChild(at, range.last);
    out.left = left;
    (*this)(node.left, left, {range.first, at}, right);
    (*this)(node.rope, right, {at + 1, range.last}, rope);
  }
};

template <class Space>
void expectSameTrees(const Boxes& boxes) {
  const std::vector<Node> reference = referenceTree(boxes);
  Workbench<Space> bench;
  bench.prepare(view(boxes));
  for (const auto& builder : builders<Space>()) {
    if (builder.run == nullptr) continue;
    SCOPED_TRACE(builder.name);
    BuildProblem<Space> problem = bench.buildProblem();
    ASSERT_EQ(reference.size(), problem.n == 0 ? 0 : 2 * problem.n - 1);
    bench.scribble(problem.nodes);
    builder.run(problem);
    bench.space().wait();
    std::vector<Node> tree =
        download(bench.space(), View<const Node>{problem.nodes, reference.size()});
    if (std::string(builder.name) == "apetrei" && problem.n > 0) {
      const std::vector<Node> split = tree;
      const auto root =
          download(bench.space(), View<const std::uint32_t>{problem.memory.root.data(), 1});
      const auto n = static_cast<std::uint32_t>(problem.n);
      Relabel{split, tree, n}(root[0], 0, {0, n - 1}, kNullIndex);
    }
    ASSERT_EQ(tree.size(), reference.size());
    if (!tree.empty())
      EXPECT_EQ(std::memcmp(tree.data(), reference.data(), tree.size() * sizeof(Node)), 0);
  }
}

/// Pairs of the boxes that are in the tree.
inline Pairs treePairs(const Boxes& boxes) {
  Pairs pairs = test::bruteForce(boxes);
  std::erase_if(pairs, [&](Pair pair) {
    return classify(boxes[pair.first]) != BoxClass::ordinary ||
           classify(boxes[pair.second]) != BoxClass::ordinary;
  });
  return pairs;
}

template <class Space>
void expectSamePairs(const Boxes& boxes) {
  const Pairs expected = treePairs(boxes);
  Workbench<Space> bench;
  bench.prepare(view(boxes));
  for (const auto& finder : finders<Space>()) {
    if (finder.run == nullptr) continue;
    SCOPED_TRACE(finder.name);
    FindProblem<Space> problem = bench.findProblem(expected.size() + 10);
    finder.run(problem);
    ASSERT_EQ(bench.found(), expected.size());
    Pairs found =
        download(bench.space(), View<const Pair>{problem.out.pairs.data(), expected.size()});
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
  }
}

template <class Space>
void expectSameOrder(const Boxes& boxes) {
  Workbench<Space> bench;
  bench.prepare(view(boxes));
  for (const auto& sort : sorts<Space>()) {
    if (sort.run == nullptr) continue;
    SCOPED_TRACE(sort.name);
    SortProblem<Space> problem = bench.sortProblem();
    const auto keys = download(bench.space(), View<const std::uint32_t>(problem.keys));
    std::vector<std::uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    sort.run(problem);
    bench.space().wait();
    EXPECT_EQ(download(bench.space(), View<const std::uint32_t>(problem.values)), order);
    auto sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(download(bench.space(), View<const std::uint32_t>(problem.keys)), sorted);
  }
}

template <class Space>
void expectAllTheSame(const Boxes& boxes) {
  expectSameTrees<Space>(boxes);
  expectSamePairs<Space>(boxes);
  expectSameOrder<Space>(boxes);
}

}  // namespace lbvh::variants
