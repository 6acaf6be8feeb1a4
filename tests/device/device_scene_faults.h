// SPDX-License-Identifier: Zlib
// Checks the errors that DevicePairFinder throws, and the errors in its report, on the host or a
// GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "device_scene_asking.h"

namespace lbvh::test {

/// The pointer plus `bytes`. It must not be used to read memory.
template <class T>
T* shifted(T* pointer, std::size_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

/// A scene with all arrays.
inline SceneModel fullScene(std::size_t n, Random& random) {
  SceneModel model = steadyScene(n, 4, random);
  model.isPacked = false;
  model.count = {static_cast<std::uint32_t>(n)};
  model.margins.assign(n, 0.25f);
  model.displacements.assign(n, {{-0.5f, 0, 0.5f}});
  model.bodies.assign(n, kNoBody);
  model.movable.assign(n, 1);
  model.excluded = {{0, 1}, {2, 3}};
  return model;
}

/// Scenes with one invalid member each.
inline std::vector<DeviceScene> badScenes(const DeviceScene& good) {
  std::vector<DeviceScene> bad;
  const auto with = [&](auto member, auto value) {
    bad.push_back(good);
    bad.back().*member = value;
  };
  for (const auto member : {&DeviceScene::min, &DeviceScene::max, &DeviceScene::displacements}) {
    const StridedVec3 triples = good.*member;
    for (const std::size_t stride : {0u, 4u, 8u, 11u, 13u, 14u, 15u})
      with(member, StridedVec3{triples.data, stride});
    for (const std::size_t bytes : {1u, 2u, 3u})
      with(member, StridedVec3{shifted(triples.data, bytes), triples.stride});
  }
  with(&DeviceScene::min, StridedVec3{nullptr, 12});
  with(&DeviceScene::max, StridedVec3{nullptr, 12});
  with(&DeviceScene::boxCount, shifted(good.boxCount, 1));
  with(&DeviceScene::margins, shifted(good.margins, 2));
  with(&DeviceScene::filters, shifted(good.filters, 2));
  with(&DeviceScene::bodies, shifted(good.bodies, 3));
  with(&DeviceScene::worlds, shifted(good.worlds, 2));
  with(&DeviceScene::excluded, View<const Pair>{shifted(good.excluded.data(), 4), 1});
  with(&DeviceScene::excluded, View<const Pair>{nullptr, 1});
  with(&DeviceScene::worldCount, (1u << 24) + 1);
  return bad;
}

template <class Space>
void refusesBadScenes(Space& space, const DeviceOptions& options) {
  Random random(211);
  DevicePairFinder finder(options);
  const SceneModel model = fullScene(20, random);
  const DeviceScene good = put(space, model);
  const std::vector<DeviceScene> bad = badScenes(good);
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THROW(finder.find(bad[i], {}, space.stream()), std::invalid_argument);
    EXPECT_THROW(finder.reserve(bad[i], {}, 10), std::invalid_argument);
  }
  DeviceScene tooMany = good;
  tooMany.boxCapacity = (std::size_t{1} << 30) + 1;
  EXPECT_THROW(finder.find(tooMany, {}, space.stream()), std::length_error);
  EXPECT_THROW(finder.reserve(good, {}, std::size_t{1} << 31), std::length_error);
  EXPECT_EQ(askForAll(space, finder, good, {}).pairs, answerOf(model).pairs)
      << "the finder still works";
}

/// Requests with one invalid member each, for 20 boxes and 4 worlds.
inline std::vector<DeviceRequest> badRequests(Pair* pairs, std::uint32_t* numbers) {
  std::vector<DeviceRequest> bad;
  const auto with = [&](auto member, auto value) -> DeviceRequest& {
    bad.emplace_back().*member = value;
    return bad.back();
  };
  with(&DeviceRequest::changes, true).layout = PairLayout::unsorted;
  with(&DeviceRequest::changes, true).layout = PairLayout::neighbours;
  for (const auto list : {&DeviceRequest::pairs, &DeviceRequest::added, &DeviceRequest::removed}) {
    with(list, View<Pair>{nullptr, 8});
    with(list, View<Pair>{shifted(pairs, 4), 8});
  }
  for (const auto list :
       {&DeviceRequest::neighbours, &DeviceRequest::offsets, &DeviceRequest::byWorld}) {
    with(list, View<std::uint32_t>{nullptr, 50});
    with(list, View<std::uint32_t>{shifted(numbers, 2), 50});
  }
  with(&DeviceRequest::offsets, View<std::uint32_t>{numbers, 20});
  with(&DeviceRequest::byWorld, View<std::uint32_t>{numbers, 4});
  return bad;
}

template <class Space>
void refusesBadRequests(Space& space, const DeviceOptions& options) {
  Random random(212);
  DevicePairFinder finder(options);
  const DeviceScene scene = put(space, fullScene(20, random));
  const auto bad = badRequests(space.put(Pairs(9)), space.put(Indices(80)));
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THROW(finder.find(scene, bad[i], space.stream()), std::invalid_argument);
    EXPECT_THROW(finder.reserve(scene, bad[i], 10), std::invalid_argument);
  }
}

template <class Space>
void refusesBadQueries(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  CUstream_st* const stream = space.stream();
  const Ray* const rays = space.put(std::vector<Ray>(3));
  const Aabb* const boxes = space.put(Boxes(3));
  auto* const hits = space.put(std::vector<RayHit>(4));
  auto* const numbers = space.put(Indices(4));
  auto* const bytes = space.put(std::vector<std::uint8_t>(3));
  const RayBatch good{{rays, 3}, nullptr};
  using Invalid = std::invalid_argument;
  EXPECT_THROW(finder.closestHits(good, nullptr, stream), Invalid);
  EXPECT_THROW(finder.anyHits(good, nullptr, stream), Invalid);
  EXPECT_THROW(finder.closestHits(good, shifted(hits, 2), stream), Invalid);
  EXPECT_THROW(finder.allHits(good, {nullptr, 2}, stream), Invalid);
  EXPECT_THROW(finder.allHits(good, {shifted(numbers, 2), 2}, stream), Invalid);
  EXPECT_THROW(finder.allHits(BoxBatch{{boxes, 3}, nullptr}, {nullptr, 2}, stream), Invalid);
  EXPECT_THROW(finder.allHits(BoxBatch{{nullptr, 3}, nullptr}, {}, stream), Invalid);
  EXPECT_THROW(finder.allHits(BoxBatch{{boxes, 3}, shifted(numbers, 1)}, {}, stream), Invalid);
  for (const RayBatch& bad : {RayBatch{{nullptr, 3}, nullptr}, RayBatch{{shifted(rays, 2), 3}, {}},
                              RayBatch{{rays, 3}, shifted(numbers, 2)}}) {
    EXPECT_THROW(finder.closestHits(bad, hits, stream), Invalid);
    EXPECT_THROW(finder.anyHits(bad, bytes, stream), Invalid);
    EXPECT_THROW(finder.allHits(bad, {}, stream), Invalid);
  }
  constexpr std::size_t kTooMany = (std::size_t{1} << 30) + 1;
  EXPECT_THROW(finder.anyHits({{rays, kTooMany}, nullptr}, bytes, stream), std::length_error);
  EXPECT_THROW(finder.reserveQueries(kTooMany, 1), std::length_error);
  EXPECT_THROW(finder.reserveQueries(1, std::size_t{1} << 31), std::length_error);
}

template <class Space>
void refusesHalfAnAllocator(Space&, DeviceOptions options) {
  options.allocator.allocate = [](std::size_t, CUstream_st*, void*) -> void* { return nullptr; };
  EXPECT_THROW(DevicePairFinder{options}, std::invalid_argument);
  options.allocator.allocate = nullptr;
  options.allocator.release = [](void*, std::size_t, CUstream_st*, void*) {};
  EXPECT_THROW(DevicePairFinder{options}, std::invalid_argument);
}

struct SceneFault {
  std::uint32_t error;
  std::function<void(SceneModel&)> make;
};

/// Faults of a scene. Each is detected even if it is the only one. None of them changes box 5 or
/// later boxes.
inline std::vector<SceneFault> sceneFaults() {
  const float nan = std::nanf("");
  return {
      {bitOf(DeviceError::boxCountTooLarge), [](SceneModel& model) { model.count[0] = 31; }},
      {bitOf(DeviceError::boxCountTooLarge),
       [](SceneModel& model) { model.count[0] = kNullIndex; }},
      {bitOf(DeviceError::worldOutOfRange),
       [](SceneModel& model) { model.worlds[0] = model.worldCount; }},
      {bitOf(DeviceError::worldOutOfRange),
       [](SceneModel& model) { model.worlds[4] = kAllWorlds - 1; }},
      {bitOf(DeviceError::nanBox), [=](SceneModel& model) { model.boxes[1].min[2] = nan; }},
      {bitOf(DeviceError::nanBox), [=](SceneModel& model) { model.boxes[1].max[0] = nan; }},
      {bitOf(DeviceError::nanBox), [=](SceneModel& model) { model.margins[2] = nan; }},
      {bitOf(DeviceError::nanBox), [=](SceneModel& model) { model.displacements[3].by[1] = nan; }},
      {bitOf(DeviceError::excludedUnsorted),
       [](SceneModel& model) {
         model.excluded = {{7, 9}, {5, 6}};
       }},
      {bitOf(DeviceError::excludedUnsorted),
       [](SceneModel& model) {
         model.excluded = {{6, 5}};
       }},
      {bitOf(DeviceError::excludedUnsorted),
       // Only the last of these pairs is wrong, and there are more pairs than boxes.
       [](SceneModel& model) {
         model.excluded.assign(40, {5, 6});
         model.excluded.push_back({5, 5});
       }},
      {bitOf(DeviceError::excludedUnsorted),
       [](SceneModel& model) {
         model.excluded = {{5, 5}};
       }},
      {0,
       [](SceneModel& model) {
         model.excluded = {{5, 6}, {5, 6}, {70, 80}};
       }},
  };
}

/// The report and the pairs must be exact. But if the list of excluded pairs is unsorted, some of
/// its pairs may be found.
template <class Space>
void reportsExactly(Space& space, DevicePairFinder& finder, const SceneModel& model,
                    std::uint32_t errors) {
  SceneModel withoutExclusions = model;
  withoutExclusions.excluded.clear();
  const Found found = askForAll(space, finder, put(space, model), {});
  EXPECT_EQ(found.report.errors, errors);
  EXPECT_EQ(found.report.boxes, model.counted());
  EXPECT_TRUE(areAmong(answerOf(model).pairs, found.pairs));
  EXPECT_TRUE(areAmong(found.pairs, answerOf(withoutExclusions).pairs))
      << "pairs that the rules do not allow";
  if ((errors & bitOf(DeviceError::excludedUnsorted)) == 0)
    EXPECT_EQ(found.pairs, answerOf(model).pairs);
  space.clear();
}

/// Packed boxes have a separate check, because they are searched in place.
template <class Space>
void reportsNanInPackedBoxes(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  SceneModel model;
  model.boxes.assign(40, boxAt(0, 0, 0, 1));
  reportsExactly(space, finder, model, 0);
  model.boxes[39].max[1] = std::nanf("");
  reportsExactly(space, finder, model, bitOf(DeviceError::nanBox));
}

template <class Space>
void reportsWhatOnlyTheDeviceSees(Space& space, const DeviceOptions& options) {
  Random random(213);
  DevicePairFinder finder(options);
  const SceneModel good = fullScene(30, random);
  SceneModel all = good;
  std::uint32_t errors = 0;
  for (const SceneFault& fault : sceneFaults()) {
    SCOPED_TRACE(fault.error);
    SceneModel bad = good;
    fault.make(bad);
    reportsExactly(space, finder, bad, fault.error);
    if (fault.error == 0) continue;
    fault.make(all);
    errors |= fault.error;
  }
  reportsExactly(space, finder, all, errors);
  reportsExactly(space, finder, good, 0);

  SceneModel behind = all;  // boxes beyond the count are ignored, and so are their errors
  std::reverse(behind.boxes.begin(), behind.boxes.end());
  std::reverse(behind.worlds.begin(), behind.worlds.end());
  std::reverse(behind.margins.begin(), behind.margins.end());
  std::reverse(behind.displacements.begin(), behind.displacements.end());
  behind.count = {25};
  reportsExactly(space, finder, behind, bitOf(DeviceError::excludedUnsorted));
}

}  // namespace lbvh::test
