// SPDX-License-Identifier: Zlib
/// @file
/// What a DevicePairFinder is asked after a search: rays and boxes against those of the search.
/// Every pointer is into the memory of the finder's space. C++17, needs no CUDA header.
#pragma once

#include <cstdint>

#include "device_scene.h"
#include "ray_test.h"
#include "types.h"

namespace lbvh {

/// Rays against the boxes of the last search.
struct RayBatch {
  View<const Ray> rays;  ///< what is asked
  /// By ray: only boxes of this world and those in all worlds count; kAllWorlds: all boxes do.
  /// Null: all.
  const std::uint32_t* worlds = nullptr;
};

/// Boxes against those of the last search.
struct BoxBatch {
  View<const Aabb> boxes;                 ///< what is asked
  const std::uint32_t* worlds = nullptr;  ///< by box, as for rays
};

/// Where a ray first meets a box.
struct RayHit {
  std::uint32_t box;  ///< the least index of those at this distance; kNullIndex: none is hit
  float distance;     ///< in units of the ray's direction; 0 if the ray begins inside
};

/// For each query all boxes that it hits, ascending: boxes[k] for offsets[i] <= k < offsets[i + 1].
/// If they have not enough room, some are missing. In the finder's memory until its next allHits().
struct DeviceHits {
  View<const std::uint32_t> offsets;     ///< one more than there are queries
  View<const std::uint32_t> boxes;       ///< room; the report has the count
  const DeviceReport* report = nullptr;  ///< in the finder's memory
};

}  // namespace lbvh
