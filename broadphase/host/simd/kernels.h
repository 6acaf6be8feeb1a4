// The inner loops of the host's step that are compiled once for each set of SIMD instructions, and
// the choice among them at run time. What they do is in host/simd/search.inl.
#pragma once

#include <atomic>
#include <cstdint>

#include "broadphase/host/block_tree.h"
#include "broadphase/stages/step_header.h"
#include "broadphase/types.h"

namespace lbvh {

/// For each box the list of the boxes that it overlaps (in a search among the queries themselves:
/// of those of greater index), in no order. `found` may exceed the room; then some lists were not
/// kept.
struct NeighbourLists {
  View<std::uint32_t> room;
  struct List {
    std::uint64_t start;  ///< in `room`
    std::uint32_t size;
  };
  List* byBox;
  std::atomic<std::uint64_t>* found;
  std::uint64_t limit;  ///< stop early beyond this many
};

/// Boxes packed into blocks, by their indices in the arrays that they come from.
struct PackedBoxes {
  BlockTree tree;
  View<const Aabb> boxes;
  View<const Filter> filters;           ///< by box, or empty
  View<const std::uint32_t> oversized;  ///< boxes that are not in the tree
  View<const std::uint32_t> nan;        ///< boxes that overlap nothing
};

/// One thread's memory for a search.
struct SearchScratch {
  float* corners;         ///< six arrays: of the leaf blocks that meet the block of the query
  std::uint32_t* blocks;  ///< their indices
  std::uint32_t* nearby;  ///< those that meet the query itself
  std::size_t stride;     ///< the length of each of these arrays

  static constexpr std::size_t strideFor(std::size_t leafBlocks) { return leafBlocks + 2 * kLanes; }
};

/// One thread's memory for sorting lists: a bit for each box, and one for each 64 of those bits.
/// All zero between two lists.
struct IndexSet {
  std::uint64_t* bits;
  std::uint64_t* words;
  std::size_t wordCount;
};

/// Two sorted lists of pairs that are being compared: what is left of them, and where the next goes
/// of those that only one has. The removed ones may overwrite the old list behind `old`.
struct DeltaMerge {
  const Pair *now, *nowEnd;
  const Pair *old, *oldEnd;
  Pair *added, *removed;
};

struct SimdKernels {
  const char* name;

  /// What the shared stage MeasureScene sums up over boxes [begin, end).
  SceneBounds (*measure)(View<const Aabb> boxes, std::size_t begin, std::size_t end);
  /// The sort keys of boxes [begin, end): codes along a Hilbert curve, whose runs are more compact
  /// than those of the Morton codes of the shared stages (a block meets half as many others).
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
  /// Writes the lists of the queries' boxes in leaf blocks [begin, end): what they overlap of
  /// `targets`, which is `queries` itself, or other boxes. False: beyond the limit.
  bool (*search)(const PackedBoxes& queries, const PackedBoxes& targets, std::uint32_t begin,
                 std::uint32_t end, const SearchScratch& scratch, const NeighbourLists& lists);
  /// Writes the pairs of boxes [begin, end), sorted, one behind the other; they just fill `out`.
  void (*sortLists)(const NeighbourLists& lists, std::uint32_t begin, std::uint32_t end,
                    const IndexSet& set, View<Pair> out);
  /// Compares the lists until one of them, or both, are nearly at their end.
  void (*mergeDelta)(DeltaMerge& merge);
};

/// The best that this processor has, or the one that the environment variable GPULBVH_SIMD names
/// (avx512, avx2 or baseline), if the processor has it.
const SimdKernels& simdKernels();

}  // namespace lbvh
