// SPDX-License-Identifier: Zlib
/// @file
/// Queries of a DevicePairFinder after a search: rays and boxes, tested against the boxes of the
/// search. Every pointer points to the finder's memory space. C++17, needs no CUDA header.
#pragma once

#include <cstdint>

#include "device_scene.h"
#include "ray_test.h"
#include "types.h"

namespace lbvh {

/// Rays that are tested against the boxes of the last search.
struct RayBatch {
  View<const Ray> rays;  ///< the queries
  /// By ray: the world whose boxes it is tested against, along with the boxes in all worlds.
  /// kAllWorlds: the ray is tested against all boxes. A null array: all rays are tested against all
  /// boxes.
  const std::uint32_t* worlds = nullptr;
};

/// Boxes that are tested against the boxes of the last search.
struct BoxBatch {
  View<const Aabb> boxes;                 ///< the queries
  const std::uint32_t* worlds = nullptr;  ///< by box, as in RayBatch
};

/// The first box that a ray hits.
struct RayHit {
  std::uint32_t box;  ///< the smallest index of the boxes at this distance; kNullIndex: no hit
  float distance;     ///< in units of the ray's direction; 0 if the ray begins inside the box
};

/// The counts and errors of a batch of queries. They are the last result that the batch writes.
struct QueryReport {
  std::uint64_t hits;     ///< hits found: the capacity that a complete list needs
  std::uint32_t queries;  ///< number of queries
  std::uint32_t errors;   ///< DeviceError bits; 0: the list is complete and correct

  /// Whether the report has this error.
  GPULBVH_HD bool has(DeviceError error) const { return (errors & bitOf(error)) != 0; }
};

/// Where the hits of a batch of queries are. Query i hits boxes[k] for offsets[i] <= k <
/// offsets[i + 1], in ascending order. If the capacity is too small, some hits are missing. Lists
/// in the finder's memory are valid until its next allHits().
struct DeviceHits {
  View<const std::uint32_t> offsets;    ///< one element for each query, and one more
  View<const std::uint32_t> boxes;      ///< its size is the capacity; the report has the count
  const QueryReport* report = nullptr;  ///< in the finder's memory
};

}  // namespace lbvh
