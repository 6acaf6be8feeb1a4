// SPDX-License-Identifier: Zlib
// What all variants share: the problems they solve, and how a row of the catalogue names one.
// A variant is a function over an execution space; it may be slow, but never wrong.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/catalogue/space.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/build_blocks.h"
#include "broadphase/host/find_neighbours.h"
#include "broadphase/host/sort_neighbours.h"
#include "broadphase/lbvh/hierarchy.h"
#include "broadphase/types.h"

namespace lbvh::variants {

/// Memory of a space for variants that need some. A run begins with scratch.reset().
template <class Space>
struct VariantMemory {
  template <class T>
  using Buffer = typename Space::template Buffer<T>;
  Scratch<typename Space::Memory> scratch;
  Buffer<std::uint32_t> root;  ///< of a tree whose root may be anywhere
  typename Space::template HostBuffer<std::uint32_t> answer;  ///< one word that the host reads

  // The host's own search.
  Buffer<std::uint32_t> neighbours;
  Buffer<NeighbourList> lists;
  std::unique_ptr<BlockBuilder> blocks;
  std::unique_ptr<NeighbourSearch> search;
  std::unique_ptr<NeighbourSort> sort;
};

/// Leaves in, tree out: 2 n - 1 nodes by THE INDEX RULE (types.h), where a variant says so in
/// another order. `codes` are 30-bit Morton codes, sorted; leaf k is box ids[k]. All is in the
/// space's memory.
template <class Space>
struct BuildProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  const std::uint32_t* codes;
  const SceneBounds* scene;  ///< `ordinary` is n
  std::uint32_t n;
  Node* nodes;
};

/// Tree in, pairs out: each overlapping pair of the tree's boxes once, in any order.
template <class Space>
struct FindProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< of the leaves; behind them the boxes that are in no tree
  const Node* nodes;
  const SceneBounds* scene;
  std::uint32_t n;
  PairOutput out;
};

/// Keys and values in, both sorted by the low `bits` bits of the keys out. The values are 0, 1, ...
/// at first, and equal keys keep that order.
template <class Space>
struct SortProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<std::uint32_t> keys, values, spareKeys, spareValues;
  int bits;
};

/// How much a traversal did, all queries together.
struct Work {
  std::uint64_t nodes = 0;  ///< nodes, or pairs of nodes, that were looked at
  std::uint64_t tests = 0;  ///< of a box against a box
};

/// For timing: counts nothing, costs nothing.
struct NoCount {
  LBVH_HD void node() const {}
  LBVH_HD void test() const {}
};

/// On one host thread.
struct Count {
  Work* work;
  void node() const { ++work->nodes; }
  void test() const { ++work->tests; }
};

/// A row of the catalogue.
template <class Problem>
struct Variant {
  const char* name;
  const char* source;     ///< the document, or paper
  double gtx690Ms;        ///< what the founding documents measured for 12,486 boxes; 0: nothing
  void (*run)(Problem&);  ///< null: not meant for this space
};

/// A row that can also say how much it does.
template <class Space>
struct FindVariant : Variant<FindProblem<Space>> {
  void (*count)(const FindProblem<Space>&, Work&) = nullptr;  ///< host only
};

}  // namespace lbvh::variants
