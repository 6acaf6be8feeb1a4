// Stage 5 as the host runs it: eight neighbouring leaves ask together. Host only.
// Differs from FindTreePairs (traversal.h) because it was measured: debris, 12,492 boxes, 70
// frames, one thread: traversal 1.9 ms against 3.0 ms a frame. The pairs are the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "broadphase/exec/host_simd.h"
#include "broadphase/stages/hierarchy.h"
#include "broadphase/types.h"

namespace lbvh {

/// Ordered half-pairs of a block of leaves: those within the block, then one traversal for the
/// box around the block, started at its last leaf's rope, so that it visits only what lies to the
/// right of the block.
struct FindBlockPairs {
  const Node* nodes;
  const SceneBounds* scene;    ///< how many leaves there are
  View<const Filter> filters;  ///< by box, or empty: all pairs are wanted

  static constexpr std::uint32_t kBlock = BoxBlock::kSize;

  static std::size_t elements(std::size_t leaves) { return (leaves + kBlock - 1) / kBlock; }

  template <class Sink>
  void operator()(std::uint32_t block, Sink& sink) const {
    const std::uint32_t n = scene->ordinary;
    const Node* leaves = nodes + (n - 1) + block * kBlock;
    const std::uint32_t count = std::min(kBlock, n - block * kBlock);
    BoxBlock boxes{};
    Node around = leaves[0];
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t before = (1u << i) - 1;
      if (i > 0 && !push(leaves, boxes.overlaps(leaves[i]) & before, leaves[i], sink)) return;
      boxes.set(i, leaves[i]);
      unite(around, around, leaves[i]);
    }
    // Fewer than a full block are the last leaves: nothing lies to their right.
    std::int32_t at = leaves[count - 1].rope;
    while (at != kSentinel) {
      const Node& node = nodes[at];
      const bool isHit = overlapNodes(around, node);
      at = isHit && !node.isLeaf() ? node.left : node.rope;
      if (isHit && node.isLeaf() && !push(leaves, boxes.overlaps(node), node, sink)) return;
    }
  }

  /// Pairs `leaf` with each of `leaves` whose bit is set. False: stop.
  template <class Sink>
  bool push(const Node* leaves, std::uint32_t bits, const Node& leaf, Sink& sink) const {
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t a = leaves[std::countr_zero(bits)].box(), b = leaf.box();
      if (!wanted(filters, a, b)) continue;
      if (!sink.push(makePair(a, b))) return false;
    }
    return true;
  }
};

}  // namespace lbvh
