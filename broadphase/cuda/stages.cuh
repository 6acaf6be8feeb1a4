// SPDX-License-Identifier: Zlib
// The stages of a step on an NVIDIA GPU, one function each, and the buffers between them. A stage
// launches its kernels and returns without waiting. step.cuh and scene_search.cuh call the stages
// in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "broadphase/core/hilbert.h"
#include "broadphase/core/limits.h"
#include "broadphase/core/scratch.h"
#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/block_search.cuh"
#include "broadphase/cuda/kernels/compare_lists.cuh"
#include "broadphase/cuda/kernels/filter_order.cuh"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/kernels/tree_search.cuh"
#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/lbvh/hierarchy.h"
#include "broadphase/options.h"

namespace lbvh {

static_assert((std::size_t{1} << DeltaSum::kBits) - 1 == kMaxCountable, "two counts share a word");

/// The largest number of pairs that the caller allows and the kernels can count.
inline std::uint64_t limitOf(std::uint64_t maxPairs) {
  return std::min<std::uint64_t>(maxPairs, kMaxCountable);
}

/// Lists of pairs by their first box.
struct ListBuffers {
  DeviceBuffer<Pair> pairs;
  DeviceBuffer<std::uint32_t> offsets;  ///< by box: where its list begins

  explicit ListBuffers(DeviceMemory memory) : pairs(memory), offsets(memory) {}

  PairLists of(std::size_t boxes) const {
    return {pairs.data(), offsets.data(), static_cast<std::uint32_t>(boxes)};
  }
};

/// Memory for two kernels. Each has a chain, through which its thread blocks exchange sums. The
/// first kernel lists hubs for the second one.
struct Chains {
  /// All words; the caller must set them to 0 before the kernels run.
  View<unsigned long long> words;
  TileChain sum, compare;
  HubList hubs;
};

/// The buffers between the stages, in the memory of one space.
struct StepBuffers {
  explicit StepBuffers(const CudaSpaceOptions& options) : space(options) {
    space.loadKernels();
    space.fill(endedBlocks.ensure(1), 0);
    space.fill(header.ensure(1), 0);  // also the padding, because copies include it
    space.wait();                     // because the next work may be on another stream
  }

  /// @param lists number of new lists
  /// @param compared number of boxes whose lists are compared
  Chains chainsFor(std::size_t lists, std::size_t compared) {
    const std::size_t sums = SumCounts::tiles(lists + 1);
    const View<unsigned long long> words =
        chainWords.ensure(2 + HubList::kWords + sums + ListComparison::tiles(compared));
    unsigned long long *const next = words.data(), *const hubs = next + 2,
                              *const sum = hubs + HubList::kWords;
    return {words, {next, sum}, {next + 1, sum + sums}, {hubs}};
  }

  CudaSpace space;
  DeviceBuffer<StepHeader> header{space.memory()};
  DeviceBuffer<SceneBounds> partialBounds{space.memory()};  ///< one for each thread block
  /// Number of thread blocks that have ended; 0 between steps.
  DeviceBuffer<std::uint32_t> endedBlocks{space.memory()};
  DeviceBuffer<std::uint32_t> order{space.memory()};  ///< indices of the boxes along the curve
  Scratch<DeviceMemory> sortScratch{space.memory()};
  LeafBlockBuffers leaves{space.memory()};
  DeviceBuffer<Node> nodes{space.memory()};  ///< nodes of the binary tree
  /// By split: the arrivals while the binary tree is built (hierarchy.h).
  DeviceBuffer<std::uint32_t> arrivals{space.memory()};
  DeviceBuffer<unsigned long long> chainWords{space.memory()};
};

/// One run through the stages.
struct StepRun {
  StepBuffers& buffers;
  StepStats* times = nullptr;  ///< receives the milliseconds of the stages, unless it is null

  CudaSpace& space() const { return buffers.space; }
  StepHeader* header() const { return buffers.header.data(); }

  /// Names a stage in profilers, and times it, during the lifetime of the result.
  CudaSpace::Range timed(const char* name, double StepStats::*ms) const {
    return space().timed(name, times != nullptr ? &(times->*ms) : nullptr);
  }
};

/// Stage 1: measures the scene, writes a header with no pairs, and clears the counters of later
/// stages.
/// @param arguments null: all boxes are measured
/// @param counts by box: the number of its pairs; cleared
/// @param words words of the chains; cleared
inline void measureScene(const StepRun& run, View<const Aabb> boxes, const StepArguments* arguments,
                         View<std::uint32_t> counts, View<unsigned long long> words) {
  const auto timer = run.timed("bounds", &StepStats::boundsMs);
  MeasureStep step{{boxes}, {boxes, arguments, run.header()}};
  step.ended = run.buffers.endedBlocks.data();
  step.counts = counts;
  step.words = words;
  step.closed = run.buffers.leaves.ensure(boxes.size()).closed;
  const std::size_t blocks = MeasureStep::blocks(step.elements());
  step.partial = run.buffers.partialBounds.ensure(blocks).data();
  run.space().launch<measureKernel>(blocks, kThreads, step);
}

/// From kMinMerged to kMaxMerged keys, a merge sort is faster: it takes 1 to 11 launches and fewer
/// instructions. A radix sort sorts fewer than kMinMerged keys in one kernel with one block. With
/// more keys it takes 12 launches, one of which fills the device even if there are few keys.
inline constexpr std::size_t kMinMerged = 2305, kMaxMerged = 1 << 17;
inline bool sortsByMerging(std::size_t boxes) {
  return kCubMerges && boxes >= kMinMerged && boxes <= kMaxMerged;
}

/// The bits in which keys may differ.
struct SortBits {
  int lowest, count;
};

/// Stages 2 and 3, for any kind of keys.
/// @param assign assign(keys, ids) returns the element function that writes `keys` and `ids`
/// @return the sorted keys, valid until the next sort
template <class Key, class Assign>
View<const Key> sortBy(const StepRun& run, std::size_t n, SortBits bits, const Assign& assign) {
  Scratch<DeviceMemory>& scratch = run.buffers.sortScratch;
  scratch.reset(2 * scratchBytes<Key>(n) + scratchBytes<std::uint32_t>(n));
  const View<Key> keys = scratch.lend<Key>("codes", n);
  const View<std::uint32_t> sorted = run.buffers.order.ensure(n);
  const bool merges = sortsByMerging(n);
  const View<std::uint32_t> ids = merges ? sorted : scratch.lend<std::uint32_t>("ids", n);
  {
    const auto timer = run.timed("codes", &StepStats::codesMs);
    run.space().forEach(n, assign(keys.data(), ids.data()));
  }
  const auto timer = run.timed("sort", &StepStats::sortMs);
  if constexpr (kCubMerges) {
    if (merges) {
      run.space().mergeSort(keys, ids);
      return keys;
    }
  }
  const View<Key> sortedKeys = scratch.lend<Key>("sorted codes", n);
  run.space().sortInto(keys, ids, sortedKeys, sorted, bits.lowest, bits.count);
  return sortedKeys;
}

/// Ends stage 3: sorts boxes with equal keys by their filters.
/// @param keys sorted
/// @param filters by box; null: does nothing
template <class Key>
void sortTies(const StepRun& run, View<const Key> keys, const Filter* filters) {
  const std::size_t groups = keys.size() / PackBlocks::kGroup;
  if (filters == nullptr || groups == 0) return;
  const auto timer = run.timed("sort", &StepStats::sortMs);
  run.space().launch<sortTiesKernel<Key>>(
      groups, PackBlocks::kGroup,
      SortTies<Key>{keys, run.buffers.order.data(), filters, run.header()});
}

/// The bits to sort by. Codes on a grid of 2^gridBits cells per axis have 3 * gridBits bits. The
/// keys that sort after all codes need one more bit.
template <class Key>
SortBits bitsOf(int gridBits) {
  return {AssignCodes<Key>::lowestBit(gridBits), 3 * gridBits + 1};
}

/// Stages 2 and 3: sorts the boxes by their codes.
template <class Key>
void sortByCodes(const StepRun& run, View<const Aabb> boxes, const Filter* filters, int gridBits) {
  const auto assign = [&](Key* codes, std::uint32_t* ids) {
    return AssignHilbertCodes<Key>{boxes, &run.header()->grid, codes, ids};
  };
  sortTies(run, sortBy<Key>(run, boxes.size(), bitsOf<Key>(gridBits), assign), filters);
}
/// @param filters by box; null: no box has a filter
/// @param gridBits selects codes of 30 or 63 bits; the step is slower, but correct, if the header's
///   grid has another number of bits
inline void sortAlongCurve(const StepRun& run, View<const Aabb> boxes, const Filter* filters,
                           int gridBits) {
  if (gridBits == 10)
    sortByCodes<std::uint32_t>(run, boxes, filters, gridBits);
  else
    sortByCodes<std::uint64_t>(run, boxes, filters, gridBits);
}

/// Stages 2 and 3: sorts the boxes by world, and within a world by their codes.
/// @param filters by box; null: no box has a filter
/// @param ranks by box, at most worlds + 1
inline void sortByWorld(const StepRun& run, View<const Aabb> boxes, const Filter* filters,
                        const std::uint32_t* ranks, std::uint32_t worlds, int gridBits) {
  const int rankBits = static_cast<int>(std::bit_width(worlds + 1));
  const int codeBits = AssignWorldKeys::codeBitsFor(gridBits, rankBits);
  const SortBits bits{0, codeBits + rankBits};
  const auto assign = [&](std::uint64_t* keys, std::uint32_t* ids) {
    return AssignWorldKeys{boxes, ranks, &run.header()->grid, codeBits, keys, ids};
  };
  sortTies(run, sortBy<std::uint64_t>(run, boxes.size(), bits, assign), filters);
}

/// Stage 4: packs the sorted boxes into blocks, and builds the bounds above the blocks.
/// @param filters by box; null: no box has a filter
/// @param ranks by box; null: there are no worlds
inline LeafBlocks buildBlocks(const StepRun& run, View<const Aabb> boxes, const Filter* filters,
                              const std::uint32_t* ranks = nullptr) {
  const auto timer = run.timed("hierarchy", &StepStats::hierarchyMs);
  const LeafBlocks leaves = run.buffers.leaves.ensure(boxes.size());
  run.space().launch<packBlocksKernel>(
      leaves.groupCount, PackBlocks::kGroup,
      PackBlocks{boxes, run.buffers.order.data(), leaves, run.header(), ranks, filters});
  return leaves;
}

/// Stages 2 to 4 for the binary hierarchy: Morton codes, a sort, and a tree over all boxes. The
/// last leaves are the oversized boxes, followed by the NaN boxes. So oversized boxes widen only
/// the bounds of their own ancestors. A node's bounds take a NaN only from its left child. So they
/// are NaN only if all boxes below the node are NaN boxes.
template <class Key>
View<const Node> buildTreeBy(const StepRun& run, View<const Aabb> boxes, int gridBits) {
  StepBuffers& buffers = run.buffers;
  const View<std::uint32_t> arrivals = buffers.arrivals.ensure(boxes.size());
  const View<const Key> codes =
      sortBy<Key>(run, boxes.size(), bitsOf<Key>(gridBits), [&](Key* keys, std::uint32_t* ids) {
        return AssignCodes<Key>{boxes, &run.header()->grid, keys, ids, arrivals.data(), gridBits};
      });
  const auto timer = run.timed("hierarchy", &StepStats::hierarchyMs);
  const View<Node> nodes = buffers.nodes.ensure(2 * boxes.size());
  run.space().forEach(boxes.size(), BuildHierarchy<Key>{boxes, buffers.order.data(), codes.data(),
                                                        CudaSpace::count(boxes.size()),
                                                        arrivals.data(), nodes.data()});
  return nodes;
}
/// @param gridBits as in sortAlongCurve()
inline View<const Node> buildTree(const StepRun& run, View<const Aabb> boxes, int gridBits) {
  return gridBits == 10 ? buildTreeBy<std::uint32_t>(run, boxes, gridBits)
                        : buildTreeBy<std::uint64_t>(run, boxes, gridBits);
}

inline unsigned long long* countOf(std::uint64_t* count) {
  return reinterpret_cast<unsigned long long*>(count);
}

/// Stage 5: finds pairs, in no particular order. The header receives their number. If `out.counts`
/// is set, the pairs of each first box are counted, too.
/// @param worlds null: there is one world
inline void findPairs(const StepRun& run, const LeafBlocks& leaves, std::size_t boxes,
                      const FoundPairs& out, const WorldSlots* worlds = nullptr) {
  const auto timer = run.timed("traversal", &StepStats::traversalMs);
  FindBlockPairs search{leaves, out, run.header(), FindBlockPairs::partsFor(boxes)};
  if (worlds == nullptr)
    return run.space().launch<findBlockPairsKernel<false>>(
        search.blocks<false>(), FindBlockPairs::kBlockThreads<false>, search);
  search.worlds = *worlds;
  run.space().launch<findBlockPairsKernel<true>>(search.blocks<true>(),
                                                 FindBlockPairs::kBlockThreads<true>, search);
}

/// Stage 5 over a binary tree. Writes its results as findPairs() does.
inline void findTreePairs(const StepRun& run, View<const Node> nodes, std::size_t boxes,
                          const FoundPairs& out) {
  const auto timer = run.timed("traversal", &StepStats::traversalMs);
  run.space().launch<findTreePairsKernel>(
      (boxes + kThreads - 1) / kThreads, kThreads,
      FindTreePairs{nodes.data(), CudaSpace::count(boxes), out});
}

/// Stage 6: turns the counts into the offsets of the lists, and writes the second boxes of the
/// pairs to their lists, unsorted.
/// @param lists number of lists
/// @param chains must have been cleared since their last use
inline void scatterPairs(const StepRun& run, const FoundPairs& found, std::size_t lists,
                         const Chains& chains, std::uint32_t* partners) {
  const auto timer = run.timed("pair sort", &StepStats::pairSortMs);
  const View<std::uint32_t> offsets{found.counts, lists + 1};
  run.space().launch<sumCountsKernel>(SumCounts::tiles(offsets.size()), kThreads,
                                      SumCounts{offsets, chains.sum, chains.hubs});
  run.space().forEach(found.pairs.size(),
                      ScatterPairs{found.pairs, found.count, found.places, found.otherPlaces,
                                   offsets.data(), partners});
}

/// The end of stage 6, and stage 7: sorts the lists, and compares them with the lists of the
/// previous step.
inline void compareLists(const StepRun& run, ListComparison comparison) {
  const auto timer = run.timed("delta", &StepStats::deltaMs);
  comparison.boxes = std::max(comparison.current.boxes, comparison.old.boxes);
  run.space().launch<compareListsKernel>(ListComparison::tiles(comparison.boxes), kThreads,
                                         comparison);
}

}  // namespace lbvh
