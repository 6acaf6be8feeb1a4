// SPDX-License-Identifier: Zlib
// The inner loops of the host's step, which are compiled once for each instruction set, and the
// choice among them at run time. Their code is in kernels.inl.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/host/block_tree.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

/// Where the neighbours of a box stand, in NeighbourLists::indices.
struct NeighbourList {
  std::uint64_t start;
  std::uint32_t size;
};

/// For each box the list of the boxes that it overlaps, in no order. In a search among the same
/// boxes a list has those of greater index only.
struct NeighbourLists {
  View<std::uint32_t> indices;
  NeighbourList* byBox;
};

/// How many neighbours all threads have found, and how many blocks they have tested a box against.
/// If there are more neighbours than NeighbourLists::indices has room for, some lists were not
/// written.
struct NeighbourCount {
  std::atomic<std::uint64_t>* found;
  std::uint64_t limit;                          ///< stop early beyond this many
  std::atomic<std::uint64_t>* tests = nullptr;  ///< null: nobody counts
  std::uint64_t mostTests = ~std::uint64_t{0};  ///< stop early beyond this many
};

/// The neighbour lists that a search writes, in the words of molecular dynamics.
enum class ListKind {
  half,  ///< each pair is in the list of its smaller index. Queries and targets are the same boxes.
  full   ///< each query's list has all targets that it overlaps, itself included if it is one
};

/// One thread's memory for a search.
struct SearchMemory {
  float* corners;         ///< six arrays: of the leaf blocks that overlap the query's block
  std::uint32_t* blocks;  ///< their indices
  std::uint32_t* nearby;  ///< those that overlap the query itself
  std::size_t stride;     ///< the length of each of these arrays

  static constexpr std::size_t strideFor(std::size_t leafBlocks) { return leafBlocks + 2 * kLanes; }
  static constexpr std::size_t wordsFor(std::size_t leafBlocks) {
    return 8 * strideFor(leafBlocks);
  }
  /// @param words wordsFor(leafBlocks) of them
  static SearchMemory in(std::uint32_t* words, std::size_t leafBlocks) {
    const std::size_t stride = strideFor(leafBlocks);
    return {reinterpret_cast<float*>(words), words + 6 * stride, words + 7 * stride, stride};
  }
};

/// One thread's memory for sorting long lists: a bit for each box, and a bit for each 64 of those.
/// All are zero between two lists.
struct IndexSet {
  std::uint64_t* bits;
  std::uint64_t* words;
  std::size_t wordCount;
};

/// Two sorted lists of pairs that are being compared: what is left of both, and where the next pair
/// goes that only one has. Removed pairs may overwrite the old list behind `old`.
struct DeltaMerge {
  const Pair *now, *nowEnd;
  const Pair *old, *oldEnd;
  Pair *added, *removed;
};

/// A candidate of a box: its index, and whether the two overlapped when they were last tested.
inline constexpr std::uint32_t kCandidateOverlaps = 1u << 31, kCandidateIndex = (1u << 30) - 1;

struct SimdKernels {
  const char* name;

  /// The sum of the shared stage MeasureScene over boxes [begin, end).
  SceneBounds (*measure)(View<const Aabb> boxes, std::size_t begin, std::size_t end);
  /// Writes the sort keys of boxes [begin, end): codes along a Hilbert curve. Its runs are more
  /// compact than those of the shared stages' Morton codes: a block overlaps half as many others.
  void (*assignShortKeys)(View<const Aabb> boxes, const Grid& grid, std::uint32_t* keys,
                          std::uint32_t* ids, std::size_t begin, std::size_t end);
  void (*assignLongKeys)(View<const Aabb> boxes, const Grid& grid, std::uint64_t* keys,
                         std::uint32_t* ids, std::size_t begin, std::size_t end);
  /// Writes leaf blocks [begin, end).
  void (*packLeaves)(const PackedBoxes& input, const std::uint32_t* ids, std::uint32_t begin,
                     std::uint32_t end);
  /// Writes block `parent` over `children` blocks from `child` on.
  void (*packParent)(const BlockTree& tree, std::uint32_t parent, std::uint32_t child,
                     std::uint32_t children);
  /// Writes the bounds of block `child` into a lane of its parent.
  void (*packBounds)(const BlockTree& tree, std::uint32_t parent, std::uint32_t lane,
                     std::uint32_t child);
  /// Writes the lists of the boxes in leaf blocks [begin, end) of `queries`: what they overlap of
  /// `targets`. False: beyond one of the limits.
  bool (*search)(const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                 std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
                 const NeighbourLists& lists, const NeighbourCount& count);
  /// Writes the pairs of boxes [begin, end), sorted, one behind the other. They just fill `out`.
  void (*sortLists)(const NeighbourLists& lists, std::uint32_t begin, std::uint32_t end,
                    const IndexSet& set, View<Pair> out);
  /// Compares the lists until one of them, or both, are nearly at their end.
  void (*mergeDelta)(DeltaMerge& merge);
  /// Tests a box against up to 64 candidates of its own (candidates.h).
  /// @return which of them overlap it and are not marked so, or the other way round
  std::uint64_t (*findFlips)(const Aabb* boxes, const Aabb& box, const std::uint32_t* candidates,
                             std::uint32_t count);
};

/// @return null if this processor does not have the instructions
const SimdKernels* simdKernels(InstructionSet wanted);

/// The best that this processor has; or what the environment variable GPULBVH_SIMD names (avx512,
/// avx2, neon or baseline). If the processor does not have that, or nothing has that name, the
/// baseline.
const SimdKernels& simdKernels();

/// How often this process has executed CPUID to learn which instructions there are. For tests.
std::uint32_t timesProcessorWasAsked();

}  // namespace lbvh
