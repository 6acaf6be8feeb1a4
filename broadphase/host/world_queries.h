// SPDX-License-Identifier: Zlib
// Tests rays and boxes against the boxes of the last search, on the host's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "broadphase/device_query.h"
#include "broadphase/host/parallel/buffer.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/world_blocks.h"

namespace lbvh {

class HostQueries {
 public:
  /// @param most maximum number of hits of a batch
  HostQueries(HostTasks& tasks, const WorldBlocks& worlds, std::uint64_t most)
      : tasks_(tasks), worlds_(worlds), most_(most) {}

  /// Raises the minimum capacity of lists in the finder's memory to this many hits.
  void reserve(std::size_t hits) { capacity_ = hits > capacity_ ? hits : capacity_; }

  void closestHits(const RayBatch& rays, RayHit* hits);
  void anyHits(const RayBatch& rays, std::uint8_t* hits);
  DeviceHits allHits(const RayBatch& rays, View<std::uint32_t> list);
  DeviceHits allHits(const BoxBatch& boxes, View<std::uint32_t> list);

 private:
  template <class TestOf>
  DeviceHits findAll(std::size_t queries, const std::uint32_t* worlds, const TestOf& testOf,
                     View<std::uint32_t> list);

  HostTasks& tasks_;
  const WorldBlocks& worlds_;
  const std::uint64_t most_;
  std::size_t capacity_ = 0;
  HostBuffer<std::uint32_t> offsets_, boxes_;
  QueryReport report_{};
};

}  // namespace lbvh
