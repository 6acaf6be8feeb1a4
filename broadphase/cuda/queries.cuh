// SPDX-License-Identifier: Zlib
// Runs a DevicePairFinder's queries on an NVIDIA GPU, against the blocks of its most recent search.
// Hits are handled like pairs: they are found unordered, counted, scattered and sorted.
#pragma once

#include <algorithm>

#include "broadphase/cuda/kernels/device_lists.cuh"
#include "broadphase/cuda/kernels/device_queries.cuh"
#include "broadphase/cuda/stages.cuh"
#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"

namespace lbvh {

class DeviceQueries {
 public:
  /// @param searched the boxes of the most recent search, on the device; each search overwrites
  ///   them in place
  /// @param limit maximum number of hits
  DeviceQueries(StepBuffers& buffers, const Searched* searched, std::uint64_t limit)
      : buffers_(buffers), searched_(searched), limit_(limit) {}

  void closest(const RayBatch& rays, RayHit* hits) {
    space_.launch<findClosestKernel>(blocksFor(rays.rays.size()), kThreads,
                                     FindClosest{{rays}, searched_, hits});
  }
  void any(const RayBatch& rays, std::uint8_t* hits) {
    space_.launch<findAnyKernel>(blocksFor(rays.rays.size()), kThreads,
                                 FindAny{{rays}, searched_, hits});
  }

  /// @param most capacity of the finder's own list, in hits; used if the caller passes no list
  template <class Queries>
  DeviceHits all(const Queries& queries, View<std::uint32_t> list, std::size_t most) {
    const std::size_t n = queries.size();
    const std::size_t capacity = list.data() != nullptr ? list.size() : most;
    const bool isFirst = header_.data() == nullptr;
    StepHeader* const header = header_.ensure(1).data();
    // Initializes the padding, too, because copies of the header include it.
    if (isFirst) space_.fill(View<StepHeader>{header, 1}, 0);
    const View<std::uint32_t> offsets = offsets_.ensure(n + 1);
    std::uint32_t* const words = words_.ensure(2 * capacity).data();
    const FoundPairs found{pairs_.ensure(capacity), limit_, countOf(&header->pairs), {},
                           offsets.data(),          words};
    if (list.data() == nullptr) list = boxes_.ensure(capacity);
    space_.fill(offsets, 0);
    const Chains chains = buffers_.chainsFor(n, n);
    space_.fill(chains.words, 0);
    space_.forEach(1, BeginQueries{header});
    space_.launch<findHitsKernel<Queries>>(
        blocksFor(n), kThreads, FindHits<Queries>{queries, searched_, found, &header->errors});
    const StepRun run{buffers_};
    scatterPairs(run, found, n, chains, words + capacity);
    const PairLists hits{found.pairs.data(), offsets.data(), static_cast<std::uint32_t>(n)};
    ListComparison sort{};
    sort.current = hits;
    sort.partners = words + capacity;
    sort.sortedPairs = found.pairs.data();
    sort.header = header;
    sort.chain = chains.compare;
    sort.hubs = chains.hubs;
    sort.others = &searched_->boxes;
    compareLists(run, sort);
    space_.forEach(capacity, CopyPartners{hits, list.data()});
    QueryReport* const report = report_.ensure(1).data();
    space_.forEach(
        1, WriteQueryReport{header, report, static_cast<std::uint32_t>(n), limit_, capacity});
    return {offsets, list, report};
  }

  const StepHeader* header() const { return header_.data(); }

 private:
  static std::size_t blocksFor(std::size_t queries) {
    constexpr std::size_t kWarps = kThreads / kWarp;
    return (queries + kWarps - 1) / kWarps;
  }

  StepBuffers& buffers_;
  CudaSpace& space_ = buffers_.space;
  const Searched* const searched_;
  const std::uint64_t limit_;
  DeviceBuffer<StepHeader> header_{space_.memory()};
  DeviceBuffer<QueryReport> report_{space_.memory()};
  DeviceBuffer<Pair> pairs_{space_.memory()};
  DeviceBuffer<std::uint32_t> offsets_{space_.memory()};
  DeviceBuffer<std::uint32_t> words_{space_.memory()};  ///< places of pairs, then partners
  DeviceBuffer<std::uint32_t> boxes_{space_.memory()};
};

}  // namespace lbvh
