// SPDX-License-Identifier: Zlib
// What can be said of a DevicePairFinder's arguments before any array is read.
#pragma once

#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"

namespace lbvh {

/// @throws std::invalid_argument, std::length_error as DevicePairFinder::find
void requireUsable(const DeviceScene& scene, const DeviceRequest& request);
/// What a search may find: its lists have 31-bit places, and neighbours stand in two.
std::uint64_t mostPairs(std::uint64_t maxPairs, const DeviceRequest& request);

/// Of queries, and where their answers go.
/// @throws std::invalid_argument, std::length_error likewise
void requireUsable(const RayBatch& rays, const RayHit* hits);
void requireUsable(const RayBatch& rays, const std::uint8_t* hits);
void requireUsable(const RayBatch& rays, View<std::uint32_t> room);
void requireUsable(const BoxBatch& boxes, View<std::uint32_t> room);

}  // namespace lbvh
