// SPDX-License-Identifier: Zlib
// Runs the stages of a step in which few boxes have changed: they update the results of the last
// step. Like the stages in stages.cuh, they launch kernels and return.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "broadphase/core/sparse_bits.h"
#include "broadphase/cuda/kernels/changed_search.cuh"
#include "broadphase/cuda/kernels/merge_changes.cuh"
#include "broadphase/cuda/stages.cuh"

namespace lbvh {

/// The boxes to search for, in memory that kernels can read: their number, then their indices.
class ChangedList {
 public:
  explicit ChangedList(PinnedMemory memory) : list_(memory) {}

  void assign(const SparseBits& set, std::size_t count) {
    capacity_ = std::bit_ceil(std::max<std::size_t>(count, kThreads));
    std::uint32_t* const list = list_.ensure(capacity_ + 1).data();
    *list = static_cast<std::uint32_t>(count);
    std::uint32_t* next = list + 1;
    set.forEach([&](std::uint32_t i) { *next++ = i; });
  }

  const std::uint32_t* data() const { return list_.data(); }
  /// Kernels that process the list are launched for this many elements. It is a power of two, so it
  /// rarely changes.
  std::size_t capacity() const { return capacity_; }

 private:
  PinnedBuffer<std::uint32_t> list_;
  std::size_t capacity_ = 0;
};

class FewChangeBuffers {
 public:
  explicit FewChangeBuffers(DeviceMemory memory)
      : slots_(memory), words_(memory), news_(memory), merged_(memory) {}

  View<std::uint32_t> slots(std::size_t boxes) { return slots_.ensure(boxes); }

  struct Lent {
    ChangeMarks marks;
    TileChain chain, reported;
    MergedTile* merged;
    /// The words of all members except `marks.news` and `merged`; the caller must set them to 0.
    View<unsigned long long> words;
  };
  /// @param blocks number of leaf blocks, padded to whole groups
  Lent lend(std::size_t boxes, std::size_t blocks, std::size_t tiles) {
    const std::size_t boxWords = (boxes + 3) / 4, rows = tiles * MergeChanges::kRows;
    Lent lent{};
    lent.words = words_.ensure(2 + 2 * tiles + (boxWords + blocks + rows + tiles + 1) / 2);
    unsigned long long* const next = lent.words.data();
    lent.chain = {next, next + 2};
    lent.reported = {next + 1, next + 2 + tiles};
    auto* at = reinterpret_cast<std::uint32_t*>(next + 2 + 2 * tiles);
    const auto take = [&at](std::size_t n) { return std::exchange(at, at + n); };
    lent.marks.boxes = reinterpret_cast<std::uint8_t*>(take(boxWords));
    lent.marks.slots = take(blocks);
    lent.marks.kept = take(rows);
    lent.marks.added = take(tiles);
    lent.marks.news = news_.ensure(tiles * ChangeMarks::kMaxNew).data();
    lent.merged = merged_.ensure(tiles).data();
    return lent;
  }

 private:
  DeviceBuffer<std::uint32_t> slots_;
  DeviceBuffer<unsigned long long> words_;
  DeviceBuffer<NewPair> news_;
  DeviceBuffer<MergedTile> merged_;
};

/// The input and the output of a step in which few boxes have changed.
struct FewChanges {
  View<const Aabb> boxes;
  OldPairs old;
  const StepArguments* arguments;
  View<Pair> pairs;
  View<std::uint32_t> offsets;
  View<Pair> added, removed;
  StepHeader* report;
};

/// @param knowsSlots whether `few` already has the slots of the current order
inline void updateFew(const StepRun& run, FewChangeBuffers& few, const ChangedList& changed,
                      const FewChanges& step, bool knowsSlots) {
  CudaSpace& space = run.space();
  const std::size_t n = step.boxes.size();
  const LeafBlocks leaves = run.buffers.leaves.ensure(n);
  const View<std::uint32_t> slots = few.slots(n);
  const std::size_t tiles = MergeChanges::tiles(step.pairs.size());
  const FewChangeBuffers::Lent lent = few.lend(n, std::size_t{leaves.groupCount} * kWarp, tiles);
  {
    const auto timer = run.timed("bounds", &StepStats::boundsMs);
    if (!knowsSlots) space.forEach(n, InvertOrder{run.buffers.order.data(), slots.data()});
    space.fill(lent.words, 0);
    space.forEach(changed.capacity(), PutChanged{step.boxes, changed.data(), slots.data(), leaves,
                                                 lent.marks, step.arguments, run.header(),
                                                 static_cast<std::uint32_t>(changed.capacity())});
  }
  {
    const auto timer = run.timed("hierarchy", &StepStats::hierarchyMs);
    space.launch<packChangedKernel>(
        leaves.groupCount, PackBlocks::kGroup,
        PackChanged{leaves, run.header(), lent.marks.slots, step.old.filters});
  }
  {
    const auto timer = run.timed("traversal", &StepStats::traversalMs);
    const FindChangedPairs search{leaves, step.old, lent.marks, run.header(),
                                  FindChangedPairs::partsFor(leaves.groupCount)};
    space.launch<findChangedPairsKernel>(search.blocks(), kThreads, search);
  }
  const auto timer = run.timed("delta", &StepStats::deltaMs);
  space.launch<mergeChangesKernel>(
      tiles, kThreads,
      MergeChanges{step.old, lent.marks, step.pairs, lent.merged, step.added, step.removed,
                   run.header(), step.report, lent.chain, lent.reported});
  space.forEach(
      n + 1, UpdateOffsets{step.old.lists.offsets, lent.merged, lent.marks, step.offsets.data()});
}

}  // namespace lbvh
