// SPDX-License-Identifier: Zlib
// Declares the inner loops of the host's step, and the functions that choose them at run time. The
// loops are compiled once for each instruction set. Their code is in kernels.inl.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/host/block_tree.h"
#include "broadphase/host/simd/ranked_hits.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

/// Where the neighbours of a box are in NeighbourLists::indices.
struct NeighbourList {
  std::uint64_t start;
  std::uint32_t size;
};

/// For each box the list of the boxes that it overlaps, by index (see ListKind). Does not own the
/// lists. Functions that change the lists take this by value. Functions that only read them take it
/// by reference to const.
struct NeighbourLists {
  View<std::uint32_t> indices;
  NeighbourList* byBox;
};

/// The result of a search by rank: the sorted hits of each block of boxes. If several threads
/// search, the lists of the blocks are in no particular order.
struct RankLists {
  View<BlockHits> hits;
  NeighbourList* byBlock;
};

/// The counts and limits of a search, shared by all threads. If more neighbours are found than
/// NeighbourLists::indices can hold, some lists are not written.
struct NeighbourCount {
  std::atomic<std::uint64_t>* found;  ///< number of neighbours
  std::uint64_t limit;                ///< after more neighbours than this, the search stops
  /// Tests of a box against a block; null: not counted. A test that 16-bit integers cannot decide
  /// is counted twice.
  std::atomic<std::uint64_t>* tests = nullptr;
  std::uint64_t mostTests = ~std::uint64_t{0};   ///< after more tests than this, the search stops
  std::atomic<std::uint64_t>* unsure = nullptr;  ///< tests that 16-bit integers could not decide
  std::atomic<std::uint64_t>* hits = nullptr;    ///< only for searches by rank: number of hits
};

/// The kinds of neighbour lists. The names `half` and `full` come from molecular dynamics.
enum class ListKind {
  half,  ///< each pair is in the list of its smaller index; queries and targets are the same
  full,  ///< all targets that a query overlaps, and the query itself if it is a target
};

/// Decides which of the neighbours that a search finds are kept.
struct NeighbourFilter {
  /// Moves the kept neighbours to the front of a box's list. A list that may have thousands of
  /// neighbours is passed in pieces: first to be counted, then again to be written.
  /// @return the number of kept neighbours
  std::uint32_t (*keep)(const void* data, std::uint32_t id, std::uint32_t* list,
                        std::uint32_t size);
  const void* data;
};

/// One thread's memory for a search.
struct SearchMemory {
  float* corners;         ///< six arrays: bounds of the leaf blocks that overlap the query's block
  std::uint32_t* blocks;  ///< indices of these blocks
  std::uint32_t* nearby;  ///< indices of the blocks that overlap the query itself
  std::size_t stride;     ///< the length of each of these arrays

  static constexpr std::size_t strideFor(std::size_t leafBlocks) {
    return leafBlocks + 18 * kLanes;
  }
  static constexpr std::size_t wordsFor(std::size_t leafBlocks) {
    return 8 * strideFor(leafBlocks);
  }
  /// @param words an array of wordsFor(leafBlocks) words
  static SearchMemory in(std::uint32_t* words, std::size_t leafBlocks) {
    const std::size_t stride = strideFor(leafBlocks);
    return {reinterpret_cast<float*>(words), words + 6 * stride, words + 7 * stride, stride};
  }
};

/// One thread's memory for sorting long lists: a bit for each box, and a bit for each word of those
/// bits. All bits are zero between two lists.
struct IndexSet {
  std::uint64_t* bits;
  std::uint64_t* words;
  std::size_t wordCount;
};

/// The state of a comparison of two sorted lists of pairs: the rest of both lists, and where to
/// write the next added and the next removed pair. Removed pairs may overwrite old pairs before
/// `old`.
struct DeltaMerge {
  const Pair *now, *nowEnd;
  const Pair *old, *oldEnd;
  Pair *added, *removed;
};

/// The hits of one box in one block, in two searches. `number` is 0 for a search without hits.
struct HitsChange {
  BlockHits now, old;
};

/// The state of a comparison of two sorted lists of hits: the rest of both lists, and where to
/// write the next change.
struct HitsMerge {
  const BlockHits *now, *nowEnd;
  const BlockHits *old, *oldEnd;
  HitsChange* out;
};

/// The state of applying changes to a sorted list of pairs: what remains of each list, and where
/// to write the next result.
struct PairPatch {
  const Pair *old, *oldEnd;
  const Pair *added, *addedEnd;
  const Pair *removed, *removedEnd;
  Pair *out, *outEnd;
};

/// A candidate of a box as one word: its index, and whether it overlapped the box when they were
/// last tested.
inline constexpr std::uint32_t kCandidateOverlaps = 1u << 31, kCandidateIndex = (1u << 30) - 1;

struct SimdKernels {
  const char* name;
  bool usesShorts;  ///< whether 16-bit tests (short_blocks.h) are faster than float tests

  /// The sum of MeasureScene (morton.h) over boxes [begin, end).
  SceneBounds (*measure)(View<const Aabb> boxes, std::size_t begin, std::size_t end);
  /// Writes the sort keys of boxes [begin, end): codes along a Hilbert curve. With Morton codes a
  /// block would overlap twice as many other blocks.
  void (*assignShortKeys)(View<const Aabb> boxes, const Grid& grid, std::uint32_t* keys,
                          std::uint32_t* ids, std::size_t begin, std::size_t end);
  void (*assignLongKeys)(View<const Aabb> boxes, const Grid& grid, std::uint64_t* keys,
                         std::uint32_t* ids, std::size_t begin, std::size_t end);
  /// Writes leaf blocks [begin, end). A box that is not ordinary leaves its lane empty.
  /// @return the number of ordinary boxes
  std::uint32_t (*packLeaves)(const PackedBoxes& input, const std::uint32_t* ids,
                              std::uint32_t begin, std::uint32_t end);
  /// Writes block `parent`, whose children are `children` blocks from `child` on.
  void (*packParent)(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                     std::uint32_t children);
  /// Writes the bounds of block `child` into a lane of its parent.
  void (*packBounds)(const BlockTree& tree, std::uint32_t parent, std::uint32_t lane,
                     std::uint32_t child);
  /// Writes the lists of the boxes in leaf blocks [begin, end) of `queries`: the boxes of `targets`
  /// that they overlap.
  /// @param filter null: all neighbours are kept
  /// @return false if a limit was exceeded
  bool (*search)(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                 std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
                 NeighbourLists lists, const NeighbourCount& count, const NeighbourFilter* filter);
  /// Writes the pairs of the boxes in leaf blocks [begin, end), by rank.
  /// @return false if a limit was exceeded
  bool (*searchByRank)(const PackedBoxes& boxes, std::uint32_t begin, std::uint32_t end,
                       const SearchMemory& memory, const RankLists& lists,
                       const NeighbourCount& count);
  /// Writes the pairs of boxes [begin, end), sorted. The pairs must fill `out` exactly.
  void (*sortLists)(NeighbourLists lists, std::uint32_t begin, std::uint32_t end,
                    const IndexSet& set, View<Pair> out);
  /// Runs two comparisons alternately. Each stops near the end of one of its lists, and the caller
  /// compares the rest.
  void (*mergeHits)(HitsMerge& one, HitsMerge& other);
  /// For each pair, writes the numbers of its two boxes to `own` and `other`. Both must have
  /// capacity for 16 numbers per hit, because the call may write garbage after the results.
  /// @param firstRank the first rank of the group of blocks
  /// @param numbers by rank; also for the empty lanes of the last block
  /// @return the number of pairs
  std::uint32_t (*expandHits)(View<const BlockHits> hits, std::uint32_t firstRank,
                              const std::uint32_t* numbers, std::uint32_t* own,
                              std::uint32_t* other);
  /// Compares two lists, and stops near the end of one of them.
  void (*mergeDelta)(DeltaMerge& merge);
  /// Applies changes, and stops near the end of one of the three lists.
  void (*patchPairs)(PairPatch& patch);
  /// Tests a box against up to 64 of its candidates (candidates.h).
  /// @return a bit for each candidate that has begun or ceased to overlap
  std::uint64_t (*findFlips)(const Aabb* boxes, const Aabb& box, const std::uint32_t* candidates,
                             std::uint32_t count);
};

/// @param name avx512, avx2, neon or baseline
/// @return null if this build or this processor does not have the set
const SimdKernels* simdKernels(const char* name);

/// The set that the environment variable GPULBVH_SIMD names, or the baseline if that set is not
/// available. Without the variable, the best set that this processor has.
const SimdKernels& simdKernels();

/// How many times this process has read the processor's features by CPUID. For tests.
std::uint32_t timesProcessorWasAsked();

}  // namespace lbvh
