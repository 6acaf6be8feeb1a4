// SPDX-License-Identifier: Zlib
// What a search for a DevicePairFinder does with its lists behind the stages of a step: small
// kernels of an element a thread, each of which looks at the counts itself.
#pragma once

#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/kernels/warp.cuh"
#include "broadphase/device_scene.h"
#include "broadphase/types.h"

namespace lbvh {

/// Copies lists to where there is room for those of more boxes, of which the others are empty.
/// Lists that are not whole are not kept: nobody knows which pairs are missing.
struct KeepLists {
  PairLists lists;
  Pair* pairs;
  View<std::uint32_t> offsets;
  const std::uint64_t* found = nullptr;  ///< null: they are whole
  std::uint64_t most = 0;                ///< pairs that they are whole with

  static std::size_t elements(std::size_t pairs, std::size_t offsets) {
    return pairs > offsets ? pairs : offsets;
  }
  __device__ void operator()(std::uint32_t i) const {
    const bool areWhole = found == nullptr || *found <= most;
    if (i < offsets.size) offsets[i] = areWhole ? lists.begin(i) : 0;
    if (i < lists.begin(lists.boxes)) pairs[i] = lists.pairs[i];
  }
};

/// The lists of sorted pairs without the boxes that they are of.
struct TakeSeconds {
  PairLists lists;
  std::uint32_t* seconds;

  __device__ void operator()(std::uint32_t i) const {
    if (i < lists.begin(lists.boxes)) seconds[i] = lists.pairs[i].second;
  }
};

/// Counts the pairs of each world, of those that had room.
struct CountByWorld {
  View<const Pair> pairs;
  const std::uint64_t* found;
  const std::uint32_t* ranks;  ///< by box; that of the boxes in all worlds is the greatest
  std::uint32_t* counts;       ///< 0 before

  __device__ void operator()(std::uint32_t i) const {
    if (i >= *found) return;
    const std::uint32_t rank = min(ranks[pairs[i].first], ranks[pairs[i].second]);
    // One addition for all lanes that have the same world, as most have.
    const std::uint32_t same = __match_any_sync(__activemask(), rank);
    if (lanesBefore(same) == 0) atomicAdd(&counts[rank], countBits(same));
  }
};

/// One element, the last of a search: says what was found, and leaves the boxes for queries.
struct WriteReport {
  StepHeader* header;
  DeviceReport* report;
  const std::uint32_t* count;  ///< of the scene
  std::uint64_t boxes;
  std::uint64_t limit;
  std::uint64_t room;  ///< pairs in the list
  std::uint64_t added, removed;
  bool hasChanges;
  bool reportsNan;  ///< nobody has looked at the boxes
  Searched searched{};
  Searched* forQueries = nullptr;  ///< null: it was a query itself

  __device__ void operator()(std::uint32_t) const {
    const std::uint64_t pairs = header->pairs;
    const DeltaCount delta = hasChanges ? header->delta : DeltaCount{};
    std::uint32_t errors = header->errors;
    header->errors = 0;
    if (pairs > limit) errors |= kSearchStopped;
    if (pairs > room) errors |= kListIsCut;
    if (delta.added > added) errors |= kAddedAreCut;
    if (delta.removed > removed) errors |= kRemovedAreCut;
    if (reportsNan && header->scene.nan > 0) errors |= kBoxIsNan;
    const auto all = static_cast<std::uint32_t>(boxes);
    *report = {pairs, delta.added, delta.removed, count != nullptr ? min(*count, all) : all,
               errors};
    if (forQueries != nullptr) *forQueries = searched;
  }
};

}  // namespace lbvh
