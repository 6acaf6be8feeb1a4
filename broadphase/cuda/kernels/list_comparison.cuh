// SPDX-License-Identifier: Zlib
// What the kernel of compare_lists.cuh is told, and how its parts count.
#pragma once

#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/look_back.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Two counts in one number, 31 bits each: a GPU's step has no more pairs (kMostPairs).
struct DeltaSum {
  static constexpr int kBits = 31;

  unsigned long long both = 0;

  __device__ static DeltaSum of(std::uint32_t added, std::uint32_t removed) {
    return {static_cast<unsigned long long>(removed) << kBits | added};
  }
  __device__ std::uint32_t added() const {
    return static_cast<std::uint32_t>(both & ((1ull << kBits) - 1));
  }
  __device__ std::uint32_t removed() const { return static_cast<std::uint32_t>(both >> kBits); }
  __device__ DeltaSum& operator+=(DeltaSum other) {
    both += other.both;
    return *this;
  }
};

struct ListComparison {
  static constexpr std::uint32_t kBoxes = 64;  ///< a block's

  PairLists fresh;               ///< sorted already if `seconds` is null
  const std::uint32_t* seconds;  ///< the new lists, unsorted
  Pair* sortedPairs;             ///< where they go
  PairLists old;
  View<const std::uint8_t> removedObjects;
  View<Pair> added, removed;  ///< as many as there are, or what there is room for
  StepHeader* header;
  StepHeader* report;  ///< where the host reads the header of the finished step; or null
  TileChain chain;
  /// Lists of any boxes, which are less than this; null: of boxes after their own.
  const std::uint64_t* others = nullptr;

  /// At least one, which ends the step.
  static std::size_t tiles(std::size_t boxes) {
    return boxes == 0 ? 1 : (boxes + kBoxes - 1) / kBoxes;
  }

  __device__ bool hasRoom() const { return added.size != 0 || removed.size != 0; }
  __device__ bool sorts() const { return seconds != nullptr; }
  __device__ bool isRemoved(std::uint32_t box) const {
    return box < removedObjects.size && removedObjects[box] != 0;
  }
  __device__ std::uint32_t freshSecond(std::uint32_t i) const {
    return sorts() ? seconds[i] : fresh.pairs[i].second;
  }
  /// Of an old pair: it is told when it goes, unless an object was removed.
  __device__ bool counts(Pair pair) const {
    return removedObjects.empty() || (!isRemoved(pair.first) && !isRemoved(pair.second));
  }

  __device__ static void put(View<Pair> list, std::uint32_t at, Pair pair) {
    if (at < list.size) list[at] = pair;
  }

  /// The last tile's block ends the step.
  __device__ void finish(DeltaSum all) const {
    if (threadIdx.x == 0) header->delta = {all.added(), all.removed()};
    if (report == nullptr) return;
    __syncthreads();
    constexpr unsigned kWords = sizeof(StepHeader) / 4;
    static_assert(kWords <= kThreads, "a word a thread");
    if (threadIdx.x < kWords)
      reinterpret_cast<std::uint32_t*>(report)[threadIdx.x] =
          reinterpret_cast<const std::uint32_t*>(header)[threadIdx.x];
  }
};

}  // namespace lbvh
