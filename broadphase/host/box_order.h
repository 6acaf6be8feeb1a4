// SPDX-License-Identifier: Zlib
// Finds the order in which boxes are packed into blocks (host/blocks.h). Runs stages 1 to 3 on the
// host, for steps, for the worlds of a DevicePairFinder, and for BoxTree. Does not pack the boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "broadphase/core/scratch.h"
#include "broadphase/host/filter_order.h"
#include "broadphase/host/order.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/options.h"

namespace lbvh {

class BoxOrder {
 public:
  using Scratch = lbvh::Scratch<HostMemory>;

  /// Up to this many boxes need no order for a search: ordering would cost more than it saves.
  static constexpr std::size_t kMaxUnordered = 256;

  BoxOrder(HostSpace& space, const SimdKernels& kernels)
      : space_(space),
        curve_(space.tasks(), kernels),
        filterOrder_(space.tasks(), space.radixSort()) {}

  static std::size_t scratchBytesFor(std::size_t boxes) {
    return scratchBytes<std::uint32_t>(boxes) + 2 * scratchBytes<std::uint64_t>(boxes);
  }

  /// Writes the indices of the boxes in their order: ordinary boxes along the curve, then oversized
  /// boxes, then boxes with a NaN. Long runs of boxes with equal keys are sorted by their filters.
  /// Resets the header.
  /// @param filters by box, or empty
  /// @param few up to this many boxes are written in index order, whatever their class; then
  ///   header.grid.bits becomes 0
  /// @param ids receives the indices, one for each box
  void find(View<const Aabb> boxes, View<const Filter> filters, std::size_t few, StepHeader& header,
            std::uint32_t* ids, Scratch& scratch, StepStats& stats) {
    if (boxes.size() <= few) return keepOrder(boxes.size(), header, ids);
    {
      const auto timer = space_.timed("bounds", stats.boundsMs);
      header.scene = curve_.measure(boxes);
      // Large boxes stay among the others in the order. On the host, one long search for a large
      // box takes less time than testing that box in all other searches.
      ChooseGrid{boxes, nullptr, &header, false}(0);
    }
    if (header.grid.bits == 10)
      sort<std::uint32_t>(boxes, filters, header, ids, scratch, stats);
    else
      sort<std::uint64_t>(boxes, filters, header, ids, scratch, stats);
  }

  std::size_t memoryBytes() const { return curve_.memoryBytes() + filterOrder_.memoryBytes(); }

 private:
  static void keepOrder(std::size_t boxes, StepHeader& header, std::uint32_t* ids) {
    std::iota(ids, ids + boxes, 0u);
    header = {};
    header.grid.bits = 0;
  }

  template <class Key>
  void sort(View<const Aabb> boxes, View<const Filter> filters, const StepHeader& header,
            std::uint32_t* ids, Scratch& scratch, StepStats& stats) {
    const Scratch::Frame frame(scratch);
    const View<Key> keys = scratch.lend<Key>("keys", boxes.size());
    {
      const auto timer = space_.timed("codes", stats.codesMs);
      curve_.assignKeys(boxes, header.grid, keys.data(), ids);
    }
    const auto timer = space_.timed("sort", stats.sortMs);
    sortIds(keys, filters, header, ids, scratch);
  }

  /// Sorts words that hold a key and an index. This takes half the time of a sort of two arrays.
  void sortIds(View<std::uint32_t> keys, View<const Filter> filters, const StepHeader& header,
               std::uint32_t* ids, Scratch& scratch) {
    const auto words = scratch.lend<std::uint64_t>("words", keys.size());
    const auto spare = scratch.lend<std::uint64_t>("spare words", keys.size());
    const int shift = CurveOrder::lowestBit(header);
    const std::uint64_t* const sorted =
        space_.radixSort().order(space_.tasks(), keys, ids, words.data(), spare.data(), shift,
                                 AssignCodes<std::uint32_t>::kKeyBits - shift);
    filterOrder_.sortTies(filters, {ids, header.scene.ordinary},
                          [=](std::size_t k) { return sorted[k] >> (32 + shift); });
  }

  void sortIds(View<std::uint64_t> keys, View<const Filter> filters, const StepHeader& header,
               std::uint32_t* ids, Scratch& scratch) {
    const auto spareKeys = scratch.lend<std::uint64_t>("spare keys", keys.size());
    const auto spareIds = scratch.lend<std::uint32_t>("spare ids", keys.size());
    const int shift = AssignCodes<std::uint64_t>::lowestBit(header.grid.bits);
    space_.sortByKey(keys, {ids, keys.size()}, spareKeys, spareIds, shift,
                     AssignCodes<std::uint64_t>::kKeyBits - shift);
    filterOrder_.sortTies(filters, {ids, header.scene.ordinary},
                          [=](std::size_t k) { return keys[k] >> shift; });
  }

  HostSpace& space_;
  CurveOrder curve_;
  FilterOrder filterOrder_;
};

}  // namespace lbvh
