// SPDX-License-Identifier: Zlib
// Defines small kernels for the lists of a DevicePairFinder. They run after the stages of a step,
// with one element per thread. They read the counts on the device.
#pragma once

#include <cstdint>

#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"
#include "broadphase/types.h"

namespace lbvh {

/// Copies the boxes' lists of pairs to arrays that may have room for more boxes. The lists of the
/// additional boxes are empty. Incomplete lists are not kept, because it is unknown which pairs are
/// missing.
struct KeepLists {
  PairLists lists;
  Pair* pairs;
  View<std::uint32_t> offsets;
  const std::uint64_t* found = nullptr;  ///< null: the lists are complete
  std::uint64_t most = 0;                ///< if more pairs were found, the lists are incomplete

  static std::size_t elements(std::size_t pairs, std::size_t offsets) {
    return pairs > offsets ? pairs : offsets;
  }
  __device__ void operator()(std::uint32_t i) const {
    const bool areWhole = found == nullptr || *found <= most;
    if (i < offsets.size()) offsets[i] = areWhole ? lists.begin(i) : 0;
    if (i < lists.begin(lists.boxes)) pairs[i] = lists.pairs[i];
  }
};

/// Copies the second boxes of sorted pairs.
struct CopyPartners {
  PairLists lists;
  std::uint32_t* partners;

  __device__ void operator()(std::uint32_t i) const {
    if (i < lists.begin(lists.boxes)) partners[i] = lists.pairs[i].second;
  }
};

/// Counts the pairs of each world. Pairs that do not fit in the list are not counted.
struct CountByWorld {
  View<const Pair> pairs;
  const std::uint64_t* found;
  const std::uint32_t* ranks;  ///< by box; boxes in all worlds have the largest rank
  std::uint32_t* counts;       ///< by rank; the caller must set them to 0

  __device__ void operator()(std::uint32_t i) const {
    if (i >= *found) return;
    const std::uint32_t rank = min(ranks[pairs[i].first], ranks[pairs[i].second]);
    // Lanes with the same rank share one atomic addition. Most lanes have the same rank.
    const std::uint32_t same = __match_any_sync(__activemask(), rank);
    if (lanesBefore(same) == 0) atomicAdd(&counts[rank], countBits(same));
  }
};

/// Reports the number of hits and the errors, at the end of a batch of queries. Runs on one thread.
struct WriteQueryReport {
  StepHeader* header;
  QueryReport* report;
  std::uint32_t queries;
  std::uint64_t limit;
  std::uint64_t capacity;  ///< capacity of the list of hits

  __device__ void operator()(std::uint32_t) const {
    std::uint32_t errors = header->errors;
    header->errors = 0;
    if (header->pairs > limit) errors |= bitOf(DeviceError::searchStopped);
    if (header->pairs > capacity) errors |= bitOf(DeviceError::pairsTruncated);
    *report = {header->pairs, queries, errors};
  }
};

/// Ends a search: reports its counts and errors, and stores what later queries need.
struct WriteReport {
  StepHeader* header;
  DeviceReport* report;
  const std::uint32_t* count;  ///< DeviceScene::boxCount
  std::uint64_t boxes;
  std::uint64_t limit;
  std::uint64_t capacity;        ///< capacity of the list of pairs
  std::uint64_t added, removed;  ///< capacities of the lists of added and removed pairs
  bool hasChanges;
  bool reportsNan;  ///< whether this kernel must report NaN boxes, because no other kernel does
  Searched searched{};
  Searched* forQueries = nullptr;
  StepHeader* forHost = nullptr;  ///< a copy of the header for the host, or null

  static constexpr unsigned kWords = sizeof(StepHeader) / sizeof(std::uint32_t);

  /// Copies one word per thread, so that a warp's writes to host memory are combined.
  __device__ void copyHeader(std::uint32_t word) const {
    if (forHost != nullptr)
      reinterpret_cast<std::uint32_t*>(forHost)[word] =
          reinterpret_cast<const std::uint32_t*>(header)[word];
  }

  __device__ void write() const {
    const std::uint64_t pairs = header->pairs;
    const DeltaCount delta = hasChanges ? header->delta : DeltaCount{};
    std::uint32_t errors = header->errors;
    header->errors = 0;
    if (pairs > limit) errors |= bitOf(DeviceError::searchStopped);
    if (pairs > capacity) errors |= bitOf(DeviceError::pairsTruncated);
    if (delta.added > added) errors |= bitOf(DeviceError::addedTruncated);
    if (delta.removed > removed) errors |= bitOf(DeviceError::removedTruncated);
    if (reportsNan && header->scene.nan > 0) errors |= bitOf(DeviceError::nanBox);
    const auto all = static_cast<std::uint32_t>(boxes);
    *report = {pairs, delta.added, delta.removed, count != nullptr ? min(*count, all) : all,
               errors};
    *forQueries = searched;
  }
};

/// One block of kWords threads.
static __global__ void writeReportKernel(WriteReport report) {
  report.copyHeader(threadIdx.x);
  __syncthreads();  // write() clears the errors next
  if (threadIdx.x == 0) report.write();
}

}  // namespace lbvh
