// SPDX-License-Identifier: Zlib
// Checks the arguments of a DevicePairFinder without reading their arrays.
#pragma once

#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"

namespace lbvh {

/// @throws std::invalid_argument, std::length_error as DevicePairFinder::find() does
void requireUsable(const DeviceScene& scene, const DeviceRequest& request);
/// Maximum number of pairs of a search. A list has at most 2^31 - 1 elements, and with
/// PairLayout::neighbours a pair takes two of them.
std::uint64_t mostPairs(std::uint64_t maxPairs, const DeviceRequest& request);

/// Checks queries, and the arrays for their results.
/// @throws std::invalid_argument, std::length_error as DevicePairFinder::find() does
void requireUsable(const RayBatch& rays, const RayHit* hits);
void requireUsable(const RayBatch& rays, const std::uint8_t* hits);
void requireUsable(const RayBatch& rays, View<std::uint32_t> list);
void requireUsable(const BoxBatch& boxes, View<std::uint32_t> list);

}  // namespace lbvh
