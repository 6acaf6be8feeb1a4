// SPDX-License-Identifier: Zlib
#include "broadphase/core/device_request.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "broadphase/core/limits.h"

namespace lbvh {
namespace {

constexpr std::uint32_t kMaxWorlds = 1u << 24;
constexpr std::size_t kMaxExcluded = 0xFFFF0000;  // maximum number of elements of a launch on a GPU

[[noreturn]] void fail(const char* array, const std::string& what) {
  throw std::invalid_argument(std::string("DevicePairFinder: ") + array + ' ' + what);
}

void require(bool holds, const char* array, const char* what) {
  if (!holds) fail(array, what);
}

/// An array may be null if it needs no elements.
template <class T>
void requireArray(const T* data, std::size_t size, const char* array) {
  if (size != 0 && data == nullptr)
    fail(array, "is null, but must have " + std::to_string(size) + " elements");
  require(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, array, "is misaligned");
}
/// An optional array may be null.
template <class T>
void requireAligned(const T* data, const char* array) {
  requireArray(data, 0, array);
}

void requireStrided(const StridedVec3& triples, const char* array) {
  if (triples.data == nullptr) return;
  requireAligned(triples.data, array);
  if (triples.stride % alignof(float) != 0 || triples.stride < 3 * sizeof(float))
    fail(array, "has a stride of " + std::to_string(triples.stride) +
                    " bytes, but it must be a multiple of 4 and at least 12");
}

/// A list in the caller's memory must have at least `least` elements. A null list is in the
/// finder's memory.
template <class T>
void requireCapacity(View<T> list, std::size_t least, const char* array) {
  if (list.data() == nullptr && list.size() != 0)
    fail(array, "is null, but its size is " + std::to_string(list.size()) + " instead of 0");
  requireAligned(list.data(), array);
  if (list.data() != nullptr && list.size() < least)
    fail(array,
         "has " + std::to_string(list.size()) + " elements, but needs " + std::to_string(least));
  if (list.data() != nullptr) requireCountable(list.size());
}

void requireScene(const DeviceScene& scene) {
  requireFitting({nullptr, scene.boxCapacity}, {});
  require(scene.boxCapacity == 0 || scene.min.data != nullptr, "min",
          "is null, but boxCapacity is not 0");
  require(scene.boxCapacity == 0 || scene.max.data != nullptr, "max",
          "is null, but boxCapacity is not 0");
  requireStrided(scene.min, "min");
  requireStrided(scene.max, "max");
  requireStrided(scene.displacements, "displacements");
  requireAligned(scene.boxCount, "boxCount");
  requireAligned(scene.margins, "margins");
  requireAligned(scene.filters, "filters");
  requireAligned(scene.bodies, "bodies");
  requireAligned(scene.worlds, "worlds");
  if (scene.worldCount > kMaxWorlds)
    fail("worldCount", "is " + std::to_string(scene.worldCount) + ", but must be at most 2^24");
  requireArray(scene.excluded.data(), scene.excluded.size(), "excluded");
  if (scene.excluded.size() > kMaxExcluded)
    fail("excluded", "has " + std::to_string(scene.excluded.size()) + " pairs, but at most " +
                         std::to_string(kMaxExcluded) + " are possible");
}

void requireRays(const RayBatch& rays) {
  requireFitting({nullptr, rays.rays.size()}, {});
  requireArray(rays.rays.data(), rays.rays.size(), "rays");
  requireAligned(rays.worlds, "worlds of rays");
}

}  // namespace

void requireUsable(const DeviceScene& scene, const DeviceRequest& request) {
  requireScene(scene);
  require(!request.changes || request.layout == PairLayout::sorted, "changes",
          "is set, but needs PairLayout::sorted");
  requireCapacity(request.pairs, 0, "pairs");
  requireCapacity(request.neighbours, 0, "neighbours");
  requireCapacity(request.offsets, scene.boxCapacity + 1, "offsets");
  requireCapacity(request.added, 0, "added");
  requireCapacity(request.removed, 0, "removed");
  requireCapacity(request.byWorld, std::size_t{scene.worldCount} + 1, "byWorld");
}

std::uint64_t mostPairs(std::uint64_t maxPairs, const DeviceRequest& request) {
  const bool isBoth = request.layout == PairLayout::neighbours;
  return std::min<std::uint64_t>(maxPairs, isBoth ? kMaxCountable / 2 : kMaxCountable);
}

void requireUsable(const RayBatch& rays, const RayHit* hits) {
  requireRays(rays);
  requireArray(hits, rays.rays.size(), "hits");
}

void requireUsable(const RayBatch& rays, const std::uint8_t* hits) {
  requireRays(rays);
  requireArray(hits, rays.rays.size(), "hits");
}

void requireUsable(const RayBatch& rays, View<std::uint32_t> list) {
  requireRays(rays);
  requireCapacity(list, 0, "list");
}

void requireUsable(const BoxBatch& boxes, View<std::uint32_t> list) {
  requireFitting(boxes.boxes, {});
  requireArray(boxes.boxes.data(), boxes.boxes.size(), "boxes");
  requireAligned(boxes.worlds, "worlds of boxes");
  requireCapacity(list, 0, "list");
}

}  // namespace lbvh
