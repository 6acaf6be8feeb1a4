// SPDX-License-Identifier: Zlib
// Compares the hits of two searches by rank (ranked_hits.h), and lists the pairs that begin or end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/core/pair_words.h"
#include "broadphase/core/scratch.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/simd/ranked_hits.h"
#include "broadphase/types.h"

namespace lbvh {

class HitsDelta {
 public:
  HitsDelta(HostTasks& tasks, const SimdKernels& kernels) : tasks_(tasks), kernels_(kernels) {}

  struct Input {
    const RankedHits &last, &next;  ///< hits of two searches with the same rank for each box
    View<const std::uint32_t> ids;  ///< the indices of the boxes, by rank
    View<const std::uint8_t>
        removedObjects;  ///< by index: the previous pairs of a flagged box are ignored
    PairWords words;
  };
  /// @param memory scratch memory
  /// @param changes receives the pairs that begin or end, by index, unsorted
  void find(const Input& input, Scratch<HostMemory>& memory, std::vector<std::uint64_t>& changes);

  std::size_t memoryBytes() const {
    return changesOf_.bytes() + removedLanes_.capacity() * sizeof(std::uint16_t);
  }

 private:
  View<const BlockHits> withoutRemoved(const Input& input, View<BlockHits> out);

  HostTasks& tasks_;
  const SimdKernels& kernels_;
  HostBuffer<View<const HitsChange>> changesOf_;  ///< by chunk of blocks
  std::vector<std::uint16_t> removedLanes_;       ///< by block: a bit for each removed box
};

}  // namespace lbvh
