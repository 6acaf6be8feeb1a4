// SPDX-License-Identifier: Zlib
// A DevicePairFinder's queries on an NVIDIA GPU, against the blocks of its last search. Their hits
// go the way of pairs: found in no order, counted, scattered, sorted. Base of scene.cuh.
#pragma once

#include <algorithm>

#include "broadphase/cuda/kernels/device_queries.cuh"
#include "broadphase/cuda/scene_search.cuh"

namespace lbvh {

class DeviceQueries : protected DeviceSearch {
 protected:
  explicit DeviceQueries(const DeviceOptions& options) : DeviceSearch(options) {}
  ~DeviceQueries() = default;

  void closest(const RayBatch& rays, RayHit* hits) {
    space_.launch(blocksFor(rays.rays.size), kThreads, findClosestKernel,
                  FindClosest{{rays}, searched_.data(), hits});
  }
  void any(const RayBatch& rays, std::uint8_t* hits) {
    space_.launch(blocksFor(rays.rays.size), kThreads, findAnyKernel,
                  FindAny{{rays}, searched_.data(), hits});
  }

  /// @param most hits, if the list is ours
  template <class Queries>
  DeviceHits all(const Queries& queries, View<std::uint32_t> list, std::size_t most) {
    const std::size_t n = queries.size();
    const std::size_t room = list.data != nullptr ? list.size : most;
    const bool isFirst = header_.data() == nullptr;
    StepHeader* const header = header_.ensure(1).data;
    if (isFirst) space_.fill(View<StepHeader>{header, 1}, 0);  // its padding is copied with it
    const View<std::uint32_t> offsets = offsets_.ensure(n + 1);
    std::uint32_t* const words = words_.ensure(2 * room).data;
    const FoundPairs found{pairs_.ensure(room), limit_, countOf(&header->pairs), {},
                           offsets.data,        words};
    if (list.data == nullptr) list = boxes_.ensure(room);
    space_.fill(offsets, 0);
    space_.fill(chainsFor(n, n).words, 0);
    space_.forEach(1, BeginQueries{header});
    space_.launch(blocksFor(n), kThreads, findHitsKernel<Queries>,
                  FindHits<Queries>{queries, searched_.data(), found, &header->errors});
    scatter(found, n, n, words + room);
    const PairLists hits{found.room.data, offsets.data, static_cast<std::uint32_t>(n)};
    ListComparison sort{};
    sort.fresh = hits;
    sort.seconds = words + room;
    sort.sortedPairs = found.room.data;
    sort.header = header;
    sort.others = &searched_.data()->boxes;
    compareLists(sort);
    space_.forEach(room, TakeSeconds{hits, list.data});
    space_.forEach(
        1, WriteReport{header, reports_.data() + 1, nullptr, n, limit_, room, 0, 0, false, false});
    return {offsets, list, reports_.data() + 1};
  }

  const StepHeader* queryHeader() const { return header_.data(); }

 private:
  static std::size_t blocksFor(std::size_t queries) {
    constexpr std::size_t kWarps = kThreads / kWarp;
    return (queries + kWarps - 1) / kWarps;
  }

  Buffer<StepHeader> header_{space_.memory()};
  Buffer<Pair> pairs_{space_.memory()};
  Buffer<std::uint32_t> offsets_{space_.memory()}, words_{space_.memory()}, boxes_{space_.memory()};
};

}  // namespace lbvh
