// SPDX-License-Identifier: Zlib
// Defines the problems that variants solve, and the type of a row of the catalogue. A variant is a
// function that runs on an execution space. It may be slow, but it must be correct.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/catalogue/space.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/blocks.h"
#include "broadphase/host/pair_lists.h"
#include "broadphase/lbvh/hierarchy.h"
#include "broadphase/types.h"

namespace lbvh::variants {

/// Memory in a space, for variants that need some. A variant's run must begin with scratch.reset().
template <class Space>
struct VariantMemory {
  template <class T>
  using Buffer = typename Space::template Buffer<T>;
  Scratch<typename Space::Memory> scratch;
  Buffer<std::uint32_t> root;  ///< index of the root, for trees in which any node may be the root
  typename Space::template HostBuffer<std::uint32_t> answer;  ///< one word that the host reads

  // Only the variant that runs production's search on the host uses the following members.
  Buffer<std::uint32_t> neighbours;
  Buffer<NeighbourList> lists;
  std::unique_ptr<BlockBuilder> blocks;
  std::unique_ptr<NeighbourSearch> search;
  std::unique_ptr<NeighbourSort> sort;
};

/// The arguments of a variant that builds a tree over n leaves. The tree has 2 n - 1 nodes,
/// numbered by THE INDEX RULE (types.h) unless a variant says otherwise. `codes` are sorted 30-bit
/// Morton codes, and leaf k is box ids[k]. All arrays are in the space's memory.
template <class Space>
struct BuildProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<const Aabb> boxes;
  const std::uint32_t* ids;
  const std::uint32_t* codes;
  std::uint32_t n;
  Node* nodes;
};

/// The arguments of a variant that finds each overlapping pair of boxes once, in any order.
template <class Space>
struct FindProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< boxes of the leaves, then boxes that are not in the tree
  const Node* nodes;
  const SceneBounds* scene;
  std::uint32_t n;
  PairOutput out;
};

/// The arguments of a variant that sorts keys, and values with them, by the low `bits` bits of the
/// keys. Before the sort the values are 0, 1, and so on. The sort must be stable.
template <class Space>
struct SortProblem {
  Space& space;
  VariantMemory<Space>& memory;
  View<std::uint32_t> keys, values, spareKeys, spareValues;
  int bits;
};

/// The work of a traversal, summed over all queries.
struct Work {
  std::uint64_t nodes = 0;  ///< number of visited nodes or pairs of nodes
  std::uint64_t tests = 0;  ///< number of tests of a box against a box
};

/// Counts nothing and costs nothing. Used when a traversal is timed.
struct NoCount {
  GPULBVH_HD void node() const {}
  GPULBVH_HD void test() const {}
};

/// Counts the work of one host thread.
struct Count {
  Work* work;
  void node() const { ++work->nodes; }
  void test() const { ++work->tests; }
};

/// A row of the catalogue.
template <class Problem>
struct Variant {
  const char* name;
  const char* source;  ///< the document or paper
  /// Milliseconds for 12,486 boxes, from the documents that README.md lists; 0: they give none.
  double gtx690Ms;
  void (*run)(Problem&);  ///< null: the variant does not run on this space
};

/// A row whose variant can also count its work.
template <class Space>
struct FindVariant : Variant<FindProblem<Space>> {
  void (*count)(const FindProblem<Space>&, Work&) = nullptr;  ///< null on a GPU
};

}  // namespace lbvh::variants
