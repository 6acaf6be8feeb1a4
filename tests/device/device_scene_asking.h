// SPDX-License-Identifier: Zlib
// Copies a SceneModel to the memory of a DevicePairFinder, searches, and copies the results back.
//
// A `Space` is memory that the finder's pointers may point to. put(vector) copies a vector into
// this memory and returns its address. get(pointer, size) copies elements back. clear() frees all
// copies. Searches run on stream(), and wait() waits for that stream. With `kNeverCuts`, the
// finder's own lists are never truncated.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "broadphase/device_pair_finder.h"
#include "device_scene_model.h"

namespace lbvh::test {

template <class Space>
DeviceScene put(Space& space, const SceneModel& model) {
  DeviceScene scene;
  scene.boxCapacity = model.boxes.size();
  if (model.isPacked && !model.boxes.empty()) {
    const float* corners = space.put(model.packed());
    scene.min = {corners, sizeof(Aabb)}, scene.max = {corners + 3, sizeof(Aabb)};
  } else {
    scene.min = {space.put(model.corners(false)), model.lowerStep * sizeof(float)};
    scene.max = {space.put(model.corners(true)), model.upperStep * sizeof(float)};
  }
  scene.boxCount = space.put(model.count);
  scene.margins = space.put(model.margins);
  scene.displacements = {space.put(model.ways()), model.wayStep * sizeof(float)};
  scene.filters = space.put(model.filters);
  scene.bodies = space.put(model.bodies);
  scene.movable = space.put(model.movable);
  scene.worlds = space.put(model.worlds);
  scene.worldCount = model.worldCount;
  scene.excluded = {space.put(model.excluded), model.excluded.size()};
  return scene;
}

/// What a search found, in the host's memory.
struct Found {
  DeviceReport report;
  Pairs pairs, added, removed;
  Indices offsets, neighbours, byWorld;
};

constexpr std::uint32_t kSomeAreCut = bitOf(DeviceError::pairsTruncated) |
                                      bitOf(DeviceError::addedTruncated) |
                                      bitOf(DeviceError::removedTruncated);

/// The first `found` elements of a list, or all elements if it has fewer.
template <class Space, class T>
std::vector<T> firstOf(Space& space, View<const T> list, std::uint64_t found) {
  return space.get(list.data(),
                   std::min<std::size_t>(static_cast<std::size_t>(found), list.size()));
}

/// Copies the results of a search that has finished.
template <class Space>
Found fetch(Space& space, const DeviceLists& lists, const DeviceScene& scene,
            const DeviceRequest& request) {
  Found found;
  found.report = space.get(lists.report, 1)[0];
  if (request.layout == PairLayout::neighbours) {
    EXPECT_GE(lists.offsets.size(), scene.boxCapacity + 1);
    found.offsets = firstOf(space, lists.offsets, scene.boxCapacity + 1);
    found.neighbours = firstOf(space, lists.neighbours, 2 * found.report.pairs);
  } else {
    found.pairs = firstOf(space, lists.pairs, found.report.pairs);
  }
  if (request.changes) {
    found.added = firstOf(space, lists.added, found.report.added);
    found.removed = firstOf(space, lists.removed, found.report.removed);
  }
  if (request.countsByWorld) {
    EXPECT_GE(lists.byWorld.size(), scene.worldCount + std::size_t{1});
    found.byWorld = firstOf(space, lists.byWorld, scene.worldCount + std::uint64_t{1});
  }
  return found;
}

template <class Space>
Found ask(Space& space, DevicePairFinder& finder, const DeviceScene& scene,
          const DeviceRequest& request) {
  const DeviceLists lists = finder.find(scene, request, space.stream());
  space.wait();
  return fetch(space, lists, scene, request);
}

/// Searches, and searches again if the lists were truncated.
template <class Space>
Found askForAll(Space& space, DevicePairFinder& finder, const DeviceScene& scene,
                const DeviceRequest& request) {
  Found found = ask(space, finder, scene, request);
  if ((found.report.errors & kSomeAreCut) == 0) return found;
  EXPECT_FALSE(Space::kNeverCuts);
  found = ask(space, finder, scene, request);
  EXPECT_EQ(found.report.errors & kSomeAreCut, 0u) << "the capacity follows the counts";
  return found;
}

/// The hits that queries found.
struct FoundHits {
  QueryReport report;
  std::vector<Indices> of;  ///< by query: indices of the boxes that it hits
};

template <class Space>
FoundHits fetchHits(Space& space, const DeviceHits& hits, std::size_t queries) {
  FoundHits found;
  found.report = space.get(hits.report, 1)[0];
  EXPECT_GE(hits.offsets.size(), queries + 1);
  const Indices offsets = firstOf(space, hits.offsets, queries + 1);
  const Indices boxes = firstOf(space, hits.boxes, found.report.hits);
  EXPECT_EQ(offsets[0], 0u);
  found.of.resize(queries);
  for (std::size_t i = 0; i < queries; ++i)
    for (std::size_t k = offsets[i]; k < offsets[i + 1] && k < boxes.size(); ++k)
      found.of[i].push_back(boxes[k]);
  if (!found.report.has(DeviceError::pairsTruncated) &&
      !found.report.has(DeviceError::searchStopped))
    EXPECT_EQ(offsets[queries], found.report.hits);
  return found;
}

template <class Space, class Batch>
FoundHits askForHits(Space& space, DevicePairFinder& finder, const Batch& batch,
                     std::size_t queries) {
  for (int round = 0;; ++round) {
    const DeviceHits hits = finder.allHits(batch, {}, space.stream());
    space.wait();
    FoundHits found = fetchHits(space, hits, queries);
    if (!found.report.has(DeviceError::pairsTruncated) || round == 1) return found;
    EXPECT_FALSE(Space::kNeverCuts);
  }
}

/// A list in the caller's memory. The guards after its end must not change.
template <class T, class Space>
class GuardedRoom {
 public:
  GuardedRoom(Space& space, std::size_t size)
      : space_(space), size_(size), there_(space.put(Bytes((size + kGuards) * sizeof(T), kMark))) {}

  View<T> view() const { return {reinterpret_cast<T*>(there_), size_}; }
  bool isWhole() const {
    const Bytes bytes = space_.get(there_, (size_ + kGuards) * sizeof(T));
    return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size_ * sizeof(T)), bytes.end(),
                       [](std::uint8_t byte) { return byte == kMark; });
  }

 private:
  using Bytes = std::vector<std::uint8_t>;
  static constexpr std::size_t kGuards = 5;
  static constexpr std::uint8_t kMark = 0xA5;

  Space& space_;
  std::size_t size_;
  std::uint8_t* there_;
};

}  // namespace lbvh::test
