// SPDX-License-Identifier: Zlib
// Queries boxes that a step or a BoxTree has packed into blocks. Does not check whether the boxes
// have changed since they were packed. C++17, host only. Installed because tree_query.h includes
// it. Programs should include tree_query.h instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../types.h"
#include "block_tree.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace lbvh {

/// Whether a predicate can test all boxes of a block at once: lanes(corners) returns a bit for each
/// lane.
template <class Hits, class = void>
struct HasLanes : std::false_type {};
template <class Hits>
struct HasLanes<Hits, std::void_t<decltype(std::declval<const Hits&>().lanes(
                          std::declval<const BoxBlock&>().corners))>> : std::true_type {};

/// The index of the lowest set bit. std::countr_zero would need C++20.
inline std::uint32_t lowestBit(std::uint32_t bits) {
#if defined(_MSC_VER) && !defined(__clang__)
  unsigned long place;
  _BitScanForward(&place, bits);
  return place;
#else
  return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}

/// Prefetches a block into the processor's cache, if the compiler can.
inline void prefetchBlock(const BoxBlock& block) {
#if defined(__GNUC__) || defined(__clang__)
  const auto* const bytes = reinterpret_cast<const char*>(&block);
  for (std::size_t k = 0; k < sizeof block; k += 64) __builtin_prefetch(bytes + k);
#else
  static_cast<void>(block);
#endif
}

/// Calls visit(box index) for each box in the blocks if hits(Aabb) is true for the box. The order
/// is unspecified. If `hits` is true for a box, it must also be true for all bounds that contain
/// the box. Several threads may query the same blocks at once. For a ray, one call of lanes() takes
/// half as long as calls of hits() for all boxes of the block.
template <class Hits, class Visit>
void queryBlocks(const BlockTree& tree, const Hits& hits, const Visit& visit) {
  std::uint32_t stack[7 * kLanes];  // at most seven levels for 2^30 boxes
  std::uint32_t depth = 0;
  if (tree.boxes > 0) stack[depth++] = tree.root;
  while (depth > 0) {
    const std::uint32_t index = stack[--depth];
    const BoxBlock& block = tree.blocks[index];
    std::uint32_t bits = (1u << kLanes) - 1;
    if constexpr (HasLanes<Hits>::value) bits = hits.lanes(block.corners);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t lane = lowestBit(bits), child = block.child[lane];
      if (child == kNullIndex) continue;
      if constexpr (!HasLanes<Hits>::value)
        if (!hits(block.box(lane))) continue;
      if (index < tree.leafBlocks)
        visit(child);
      else
        prefetchBlock(tree.blocks[stack[depth++] = child]);
    }
  }
}

/// Calls visit(box index) for the boxes that queryBlocks() finds, and for all oversized boxes, even
/// those for which `hits` would be false. It never visits a box with a NaN.
///
/// Oversized boxes are not tested, because the array of boxes may have moved. `visit` may create a
/// box, which can move the array.
template <class Hits, class Visit>
void queryPacked(const PackedBoxes& packed, const Hits& hits, const Visit& visit) {
  queryBlocks(packed.tree, hits, visit);
  for (const std::uint32_t box : packed.oversized) visit(box);
}

/// Does what queryPacked() does, but also tests oversized boxes: calls visit(box index) only for
/// boxes for which hits(Aabb) is true. The array of boxes must not have moved.
template <class Hits, class Visit>
void queryExactly(const PackedBoxes& packed, const Hits& hits, const Visit& visit) {
  queryBlocks(packed.tree, hits, visit);
  for (const std::uint32_t box : packed.oversized)
    if (hits(packed.boxes[box])) visit(box);
}

}  // namespace lbvh
