// SPDX-License-Identifier: Zlib
#include "broadphase/core/device_request.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "broadphase/core/limits.h"

namespace lbvh {
namespace {

constexpr std::uint32_t kMostWorlds = 1u << 24;
constexpr std::size_t kMostExcluded = 0xFFFF0000;  // what a GPU's kernels can count

void require(bool holds, const char* array, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("DevicePairFinder: ") + array + ' ' + what);
}

/// An array of `size` elements, whatever may be behind it.
template <class T>
void requireArray(const T* data, std::size_t size, const char* array) {
  require(size == 0 || data != nullptr, array, "is null");
  require(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, array, "is misaligned");
}
/// One that may be left out.
template <class T>
void requireAligned(const T* data, const char* array) {
  requireArray(data, 0, array);
}

void requireTriples(const Triples& triples, const char* array) {
  if (triples.data == nullptr) return;
  requireAligned(triples.data, array);
  require(triples.stride % alignof(float) == 0 && triples.stride >= 3 * sizeof(float), array,
          "has a stride that is no multiple of 4, or less than 12");
}

/// A list that the caller owns has room for `least`.
template <class T>
void requireRoom(View<T> list, std::size_t least, const char* array) {
  require(list.data != nullptr || list.size == 0, array, "is null, but has a size");
  requireAligned(list.data, array);
  require(list.data == nullptr || list.size >= least, array, "has too little room");
  if (list.data != nullptr) requireCountable(list.size);
}

void requireScene(const DeviceScene& scene) {
  requireFitting({nullptr, scene.boxes}, {});
  require(scene.boxes == 0 || scene.lower.data != nullptr, "lower", "is null");
  require(scene.boxes == 0 || scene.upper.data != nullptr, "upper", "is null");
  requireTriples(scene.lower, "lower");
  requireTriples(scene.upper, "upper");
  requireTriples(scene.displacements, "displacements");
  requireAligned(scene.count, "count");
  requireAligned(scene.margins, "margins");
  requireAligned(scene.filters, "filters");
  requireAligned(scene.bodies, "bodies");
  requireAligned(scene.worlds, "worlds");
  require(scene.worldCount <= kMostWorlds, "worldCount", "is more than 2^24");
  requireArray(scene.excluded.data, scene.excluded.size, "excluded");
  require(scene.excluded.size <= kMostExcluded, "excluded", "has too many pairs");
}

void requireRays(const RayBatch& rays) {
  requireFitting({nullptr, rays.rays.size}, {});
  requireArray(rays.rays.data, rays.rays.size, "rays");
  requireAligned(rays.worlds, "worlds of rays");
}

}  // namespace

void requireUsable(const DeviceScene& scene, const DeviceRequest& request) {
  requireScene(scene);
  require(!request.changes || request.form == PairForm::sorted, "changes",
          "are wanted, but not of sorted pairs");
  requireRoom(request.pairs, 0, "pairs");
  requireRoom(request.neighbours, 0, "neighbours");
  requireRoom(request.offsets, scene.boxes + 1, "offsets");
  requireRoom(request.added, 0, "added");
  requireRoom(request.removed, 0, "removed");
  requireRoom(request.byWorld, std::size_t{scene.worldCount} + 1, "byWorld");
}

std::uint64_t mostPairs(std::uint64_t maxPairs, const DeviceRequest& request) {
  const bool isBoth = request.form == PairForm::neighbours;
  return std::min<std::uint64_t>(maxPairs, isBoth ? kMostCountable / 2 : kMostCountable);
}

void requireUsable(const RayBatch& rays, const RayHit* hits) {
  requireRays(rays);
  requireArray(hits, rays.rays.size, "hits");
}

void requireUsable(const RayBatch& rays, const std::uint8_t* hits) {
  requireRays(rays);
  requireArray(hits, rays.rays.size, "hits");
}

void requireUsable(const RayBatch& rays, View<std::uint32_t> room) {
  requireRays(rays);
  requireRoom(room, 0, "room");
}

void requireUsable(const BoxBatch& boxes, View<std::uint32_t> room) {
  requireFitting(boxes.boxes, {});
  requireArray(boxes.boxes.data, boxes.boxes.size, "boxes");
  requireAligned(boxes.worlds, "worlds of boxes");
  requireRoom(room, 0, "room");
}

}  // namespace lbvh
