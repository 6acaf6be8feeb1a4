// SPDX-License-Identifier: Zlib
// Runs stages 4 and 5 of a step on the host's threads. Packs boxes into blocks of sixteen
// (block_tree.h), in which single boxes can be replaced. Searches the blocks for the neighbours of
// each box. The inner loops are in simd/blocks.inl, simd/rank_search.inl and simd/list_search.inl.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "broadphase/core/step_header.h"
#include "broadphase/host/block_tree.h"
#include "broadphase/host/block_wear.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/simd/short_blocks.h"

namespace lbvh {

/// Packs the first packed.tree.boxes boxes of `ids` into the blocks of `packed`.
/// @return how many of them are ordinary; the lanes of the others are empty
std::uint32_t packBlocks(HostTasks& tasks, const SimdKernels& kernels, const PackedBoxes& packed,
                         const std::uint32_t* ids);

class BlockBuilder {
 public:
  BlockBuilder(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  /// Packs all boxes. The first `ranked` ids get a lane each, in their order. A box that is not
  /// ordinary leaves its lane empty. All later ids must belong to boxes with a NaN.
  /// @param inIndexOrder whether the ids are in ascending order
  /// @param grid the grid of the 16-bit integers for searches by rank; null: none
  void pack(View<const Aabb> boxes, View<const Filter> filters, View<const std::uint32_t> ids,
            std::size_t ranked, bool inIndexOrder, const ShortGrid* grid = nullptr);

  /// Updates the given boxes and filters; `boxes` may have grown. Boxes with a lane keep it, and
  /// the bounds above them are updated. Boxes without a lane are kept outside the tree.
  /// @param ids sorted by placeOf()
  /// @return false if too many boxes would be outside the tree; then all boxes must be packed
  bool replace(View<const std::uint32_t> ids, View<const Aabb> boxes, View<const Filter> filters);

  /// The index of a box's lane, or the number of all lanes if the box has no lane. Boxes with
  /// similar lane indices are close to each other in space. Valid after findPlaces().
  std::uint32_t placeOf(std::uint32_t id) const;
  void findPlaces();

  /// Whether replaced boxes have made the blocks so wide that they should be packed again. Must be
  /// called once per step. Always false if the boxes are in index order, because packing again
  /// would make no block tighter.
  bool wears() {
    if (!knowsPlaces_ || packed_.tree.isInIndexOrder) return false;
    wear_.endStep();
    return wear_.isDue();
  }

  const PackedBoxes& packed() const { return packed_; }
  std::size_t memoryBytes() const;

 private:
  /// Maximum number of boxes outside the tree, not counting those that were oversized in pack().
  static constexpr std::size_t kMaxBeside = 64;
  static constexpr std::uint32_t kBeside = kNullIndex - 1;

  void listOthers(View<const std::uint32_t> ids, std::size_t ranked, std::size_t ordinary);
  bool replaceLeaf(std::uint32_t id);
  bool replaceBeside(std::uint32_t id);
  bool keepBeside(std::uint32_t id);
  void dropFromBeside(std::uint32_t id);
  void setLeaf(std::uint32_t leaf, std::uint32_t id);
  void packBoundsOf(View<const std::uint32_t> ids);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  PackedBoxes packed_;
  HostBuffer<BoxBlock> blocks_;
  HostBuffer<FilterBlock> filters_, common_;
  HostBuffer<ShortBlock> shortBlocks_;
  ShortBlocks shorts_{};
  std::vector<std::uint32_t> beside_;  ///< the boxes outside the tree, and capacity for more
  std::vector<std::uint32_t> nan_;
  std::vector<std::uint32_t> places_;   ///< by box: its lane, kBeside, or kNullIndex
  std::vector<std::uint32_t> touched_;  ///< blocks whose bounds have changed
  BlockWear wear_;                      ///< valid after findPlaces()
  bool knowsPlaces_ = false;
};

/// Query boxes, and the target boxes among which their neighbours are found. A box may be a query
/// in one part only.
struct SearchPart {
  const PackedBoxes* queries;
  const PackedBoxes* targets;
};

/// A search stops early when it exceeds one of these limits.
struct SearchLimits {
  std::uint64_t neighbours = ~std::uint64_t{0};
  std::uint64_t tests = ~std::uint64_t{0};
};

/// Searches blocks instead of the binary tree (lbvh/), because measurements showed that blocks are
/// faster. A random walk of 65,536 boxes takes 5 ms per step on one thread instead of 25 ms.
class NeighbourSearch {
 public:
  NeighbourSearch(HostTasks& tasks, const SimdKernels& kernels)
      : tasks_(tasks), kernels_(kernels) {}

  /// Writes the list of each query box: the targets that it overlaps (see ListKind).
  /// @param filter is called by all threads; null: all neighbours are kept
  /// @return the number of neighbours. If it exceeds the size of lists.indices, some lists were not
  ///   written. If a limit was exceeded, not all neighbours were counted.
  std::uint64_t find(View<const SearchPart> parts, ListKind kind, NeighbourLists lists,
                     const SearchLimits& limits, const NeighbourFilter* filter = nullptr);

  /// Finds each pair of the boxes once, and writes the pairs by rank (simd/ranked_hits.h).
  /// @param limits limits.neighbours is the maximum number of pairs
  /// @return the number of hits. If it exceeds the size of lists.hits, some hits were not written.
  ///   If a limit was exceeded, not all hits were counted.
  std::uint64_t findByRank(const PackedBoxes& boxes, const RankLists& lists,
                           const SearchLimits& limits);
  /// Number of pairs that the last findByRank() found.
  std::uint64_t rankedPairs() const { return rankedPairs_; }

  /// Number of tests of a box against a block in the last search, as a measure of its cost. It does
  /// not depend on the number of threads, unless the search stopped early.
  std::uint64_t tests() const { return tests_; }
  /// Number of tests that 16-bit integers could not decide. In tests() they are counted twice.
  std::uint64_t unsure() const { return unsure_; }

  std::size_t memoryBytes() const {
    return memory_.bytes() +
           (firstBlock_.capacity() + firstOversized_.capacity()) * sizeof(std::size_t);
  }

 private:
  struct Search;

  void number(View<const SearchPart> parts);
  std::uint32_t* memoryOf(std::size_t worker) const {
    return memory_.data() + worker * wordsAWorker_;
  }
  void findTreeLists(const Search& search);
  void findOversizedLists(const Search& search);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<std::uint32_t> memory_;  ///< SearchMemory of all workers
  std::size_t wordsAWorker_ = 0;
  /// By part: the number of blocks, or of oversized boxes, in all earlier parts. Then the total.
  std::vector<std::size_t> firstBlock_, firstOversized_;
  std::atomic<std::uint64_t> tests_{0}, unsure_{0};
  std::uint64_t rankedPairs_ = 0;
};

}  // namespace lbvh
