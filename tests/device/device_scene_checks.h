// SPDX-License-Identifier: Zlib
// Checks searches on the host or a GPU: the lists must equal the model's lists in every layout, in
// the finder's memory and in the caller's memory. device_scene_asking.h says what a `Space` is.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device_scene_asking.h"

namespace lbvh::test {

constexpr std::size_t kSceneSizes[] = {33, 0, 300, 1, 33, 2, 33, 1025};

inline void agrees(const Found& found, const SceneAnswer& expected, const SceneModel& model) {
  EXPECT_EQ(found.report.pairs, expected.pairs.size());
  EXPECT_EQ(found.report.boxes, model.counted());
  EXPECT_EQ(found.report.errors, expected.errors);
}

template <class Space>
void findsWhatTheModelSays(Space& space, const DeviceOptions& options, std::size_t scenes) {
  Random random(201);
  DevicePairFinder finder(options);
  for (std::size_t i = 0; i < scenes; ++i) {
    SCOPED_TRACE("scene " + std::to_string(i));
    const SceneModel model = spoiltScene(kSceneSizes[i % std::size(kSceneSizes)], random);
    const SceneAnswer expected = answerOf(model);
    DeviceRequest request;
    request.countsByWorld = random.below(2) == 0;
    const Found found = askForAll(space, finder, put(space, model), request);
    agrees(found, expected, model);
    EXPECT_EQ(found.pairs, expected.pairs);
    if (request.countsByWorld) EXPECT_EQ(found.byWorld, expected.byWorld);
    space.clear();
  }
}

/// One world has enough boxes for all threads, and many boxes are in all worlds.
template <class Space>
void findsPairsInLargeWorlds(Space& space, const DeviceOptions& options) {
  Random random(207);
  SceneModel model;
  model.boxes = boxSets()[0].make(16000, random);
  model.worldCount = 3;
  for (std::size_t i = 0; i < model.boxes.size(); ++i) {
    const std::uint32_t kind = random.below(10);
    model.worlds.push_back(kind == 0 ? kAllWorlds : kind == 1 ? 2 : 0);
  }
  model.boxes[7] = {{-1e18f, 0, 0}, {1e18f, 1, 1e18f}};
  const SceneAnswer expected = answerOf(model);
  DevicePairFinder finder(options);
  DeviceRequest request;
  request.countsByWorld = true;
  const Found found = askForAll(space, finder, put(space, model), request);
  agrees(found, expected, model);
  EXPECT_EQ(found.pairs, expected.pairs);
  EXPECT_EQ(found.byWorld, expected.byWorld);
}

/// The displacement is added first, then the margin. Rounding shows the order: 2^24 + 1 is not
/// representable as a float, and becomes 2^24.
template <class Space>
void sweepsBeforeItGrows(Space& space, const DeviceOptions& options) {
  constexpr float kEdge = 0x1p24f;
  SceneModel model;
  model.boxes = {{{-kEdge, 0, 0}, {kEdge, 1, 1}},         // grows by 1 and then by 2, to 2^24 + 2
                 {{kEdge + 2, 0, 0}, {kEdge + 2, 1, 1}},  // touches the first box
                 {{kEdge + 4, 0, 0}, {kEdge + 4, 1, 1}},  // would touch it if 3 were added at once
                 {{-kEdge - 2, 0, 0}, {-kEdge - 2, 1, 1}},
                 {{-kEdge - 4, 0, 0}, {-kEdge - 4, 1, 1}}};
  model.margins = {2, 0, 0, 0, 0};
  DevicePairFinder finder(options);
  for (const float way : {1.0f, -1.0f}) {
    SCOPED_TRACE(way);
    model.displacements = {{{way, 0, 0}}, {}, {}, {}, {}};
    const Pairs expected{{0, 1}, {0, 3}};
    EXPECT_EQ(answerOf(model).pairs, expected);
    EXPECT_EQ(askForAll(space, finder, put(space, model), {}).pairs, expected);
  }
}

template <class Space>
void allFormsAgree(Space& space, const DeviceOptions& options, std::size_t scenes) {
  Random random(202);
  DevicePairFinder finder(options);
  for (std::size_t i = 0; i < scenes; ++i) {
    SCOPED_TRACE("scene " + std::to_string(i));
    const SceneModel model = randomScene(kSceneSizes[i % std::size(kSceneSizes)], random);
    const SceneAnswer expected = answerOf(model);
    const Neighbours neighbours = neighboursOf(expected.pairs, model.boxes.size());
    const DeviceScene scene = put(space, model);
    for (const PairLayout form :
         {PairLayout::neighbours, PairLayout::unsorted, PairLayout::sorted}) {
      DeviceRequest request;
      request.layout = form;
      request.countsByWorld = true;
      Found found = askForAll(space, finder, scene, request);
      agrees(found, expected, model);
      EXPECT_EQ(found.byWorld, expected.byWorld);
      if (form == PairLayout::unsorted) std::sort(found.pairs.begin(), found.pairs.end());
      EXPECT_EQ(found.pairs, form == PairLayout::neighbours ? Pairs{} : expected.pairs);
      if (form != PairLayout::neighbours) continue;
      EXPECT_EQ(found.offsets, neighbours.offsets);
      EXPECT_EQ(found.neighbours, neighbours.lists);
    }
    space.clear();
  }
}

/// Equal boxes, which all overlap each other. Their arrays are not packed.
inline SceneModel crowd(std::size_t n) {
  SceneModel model;
  model.boxes.assign(n, boxAt(1, 1, 1, 1));
  model.isPacked = false;
  return model;
}

/// Ten boxes have 45 pairs, which is the maximum that the options allow.
template <class Space>
void stopsOnlyBeyondItsLimit(Space& space, DeviceOptions options) {
  options.maxPairs = 45;
  DevicePairFinder finder(options);
  for (const PairLayout form : {PairLayout::unsorted, PairLayout::sorted, PairLayout::neighbours}) {
    DeviceRequest request;
    request.layout = form;
    for (const std::size_t n : {10u, 11u, 10u}) {
      SCOPED_TRACE(n);
      const SceneModel model = crowd(n);
      const Found found = ask(space, finder, put(space, model), request);
      if (n == 10) agrees(found, answerOf(model), model);
      if (n == 10) continue;
      EXPECT_GT(found.report.pairs, options.maxPairs);
      EXPECT_TRUE(found.report.has(DeviceError::searchStopped));
    }
  }
}

/// The scene `model` after some of its boxes have moved. The last box is ignored.
inline SceneModel later(SceneModel model, Random& random) {
  const auto n = static_cast<std::uint32_t>(model.boxes.size());
  for (std::uint32_t i = 0; i < n / 8; ++i)
    model.boxes[random.below(n)].min[random.below(3)] -= 0.5f;
  if (n > 0) model.count = {n - 1};
  return model;
}

template <class Space>
void tellsWhatHasChanged(Space& space, const DeviceOptions& options) {
  Random random(203);
  DevicePairFinder finder(options);
  DeviceRequest request, other;
  request.changes = true;
  other.layout = PairLayout::unsorted;
  SceneModel model = randomScene(300, random);
  finder.reserve(put(space, model), request, 20000);
  Pairs before;
  for (const std::size_t n : {300u, 300u, 33u, 0u, 0u, 500u, 499u, 2u, 40u, 0u, 40u, 600u}) {
    SCOPED_TRACE(n);
    model = n == model.boxes.size() ? later(model, random) : randomScene(n, random);
    const SceneAnswer expected = answerOf(model);
    const Found found = ask(space, finder, put(space, model), request);
    agrees(found, expected, model);
    EXPECT_EQ(found.pairs, expected.pairs);
    EXPECT_EQ(found.added, without(expected.pairs, before));
    EXPECT_EQ(found.removed, without(before, expected.pairs));
    EXPECT_EQ(found.report.added, without(expected.pairs, before).size());
    EXPECT_EQ(found.report.removed, without(before, expected.pairs).size());
    before = expected.pairs;
    ask(space, finder, put(space, randomScene(50, random)), other);  // a search without `changes`
    space.clear();
  }
}

/// A scene with more than n / 2 pairs and no errors.
inline SceneModel crowdedScene(std::size_t n, Random& random) {
  for (;;) {
    SceneModel model = randomScene(n, random);
    if (answerOf(model).pairs.size() > n / 2) return model;
  }
}

template <class Space>
void callerOwnsTheLists(Space& space, const DeviceOptions& options) {
  Random random(204);
  DevicePairFinder finder(options);
  for (const PairLayout form : {PairLayout::unsorted, PairLayout::sorted}) {
    const SceneModel model = crowdedScene(60, random);
    const SceneAnswer expected = answerOf(model);
    const DeviceScene scene = put(space, model);
    const std::size_t need = expected.pairs.size();
    for (const std::size_t size : {need, need - 1, std::size_t{0}, need + 40}) {
      SCOPED_TRACE(size);
      const GuardedRoom<Pair, Space> room(space, size);
      DeviceRequest request;
      request.layout = form;
      request.pairs = room.view();
      const DeviceLists lists = finder.find(scene, request, space.stream());
      space.wait();
      EXPECT_EQ(lists.pairs.data(), request.pairs.data());
      EXPECT_EQ(lists.pairs.size(), size);
      Found found = fetch(space, lists, scene, request);
      EXPECT_TRUE(room.isWhole());
      EXPECT_EQ(found.report.pairs, need);
      EXPECT_EQ(found.report.errors, size < need ? bitOf(DeviceError::pairsTruncated) : 0u);
      if (form == PairLayout::unsorted) std::sort(found.pairs.begin(), found.pairs.end());
      EXPECT_EQ(found.pairs.size(), std::min(size, need));
      EXPECT_TRUE(areAmong(found.pairs, expected.pairs));
    }
    space.clear();
  }
}

template <class Space>
void callerOwnsTheNeighbours(Space& space, const DeviceOptions& options) {
  Random random(205);
  DevicePairFinder finder(options);
  const SceneModel model = crowdedScene(60, random);
  const SceneAnswer expected = answerOf(model);
  const Neighbours neighbours = neighboursOf(expected.pairs, 60);
  const DeviceScene scene = put(space, model);
  const std::size_t need = neighbours.lists.size();
  for (const std::size_t size : {need, need - 1, std::size_t{0}, need + 40}) {
    SCOPED_TRACE(size);
    const GuardedRoom<std::uint32_t, Space> room(space, size), offsets(space, 61),
        byWorld(space, model.worldCount + std::size_t{1});
    DeviceRequest request;
    request.layout = PairLayout::neighbours;
    request.countsByWorld = true;
    request.neighbours = room.view();
    request.offsets = offsets.view();
    request.byWorld = byWorld.view();
    const Found found = ask(space, finder, scene, request);
    EXPECT_TRUE(room.isWhole() && offsets.isWhole() && byWorld.isWhole());
    EXPECT_EQ(found.report.pairs, expected.pairs.size());
    EXPECT_EQ(found.report.errors, size < need ? bitOf(DeviceError::pairsTruncated) : 0u);
    const std::vector<std::uint32_t> places = space.get(request.offsets.data(), 61);
    ASSERT_LE(places.back(), size) << "offsets must not point beyond the list";
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    for (std::size_t k = 0; k < places.back(); ++k) EXPECT_LT(found.neighbours[k], 60u);
    if (size < need) continue;
    EXPECT_EQ(places, neighbours.offsets);
    EXPECT_EQ(space.get(request.neighbours.data(), need), neighbours.lists);
    EXPECT_EQ(space.get(request.byWorld.data(), byWorld.view().size()), expected.byWorld);
  }
}

/// Checks the capacity of each of the finder's lists. Reserving 0 pairs means eight pairs per box,
/// or eight hits per query.
template <class Space>
void hasTheRoomThatWasReserved(Space& space, const DeviceOptions& options) {
  Random random(208);
  const DeviceScene scene = put(space, crowdedScene(60, random));
  for (const std::size_t pairs : {std::size_t{0}, std::size_t{5000}}) {
    SCOPED_TRACE(pairs);
    const std::size_t least = pairs == 0 ? 8 * scene.boxCapacity : pairs;
    DevicePairFinder finder(options);
    DeviceRequest sorted, neighbours;
    sorted.changes = true;
    neighbours.layout = PairLayout::neighbours;
    finder.reserve(scene, sorted, pairs);
    const DeviceLists lists = finder.find(scene, sorted, space.stream());
    EXPECT_GE(std::min({lists.pairs.size(), lists.added.size(), lists.removed.size()}), least);
    finder.reserve(scene, neighbours, pairs);
    EXPECT_GE(finder.find(scene, neighbours, space.stream()).neighbours.size(), 2 * least);
    finder.reserveQueries(60, pairs);
    EXPECT_GE(finder.allHits(RayBatch{}, {}, space.stream()).boxes.size(), least);
    space.wait();
  }
}

/// Searches once into the caller's lists. The search before it found the pairs `before`. The lists
/// that `missing` names are one pair too short.
template <class Space>
void hasRoomForChanges(Space& space, DevicePairFinder& finder, const Pairs& before,
                       const SceneModel& model, std::uint32_t missing) {
  SCOPED_TRACE(missing);
  const SceneAnswer expected = answerOf(model);
  const Pairs added = without(expected.pairs, before), removed = without(before, expected.pairs);
  ASSERT_FALSE(added.empty() || removed.empty());
  const GuardedRoom<Pair, Space> pairs(space, expected.pairs.size()),
      more(space, added.size() - ((missing & bitOf(DeviceError::addedTruncated)) != 0 ? 1 : 0)),
      fewer(space,
            removed.size() - ((missing & bitOf(DeviceError::removedTruncated)) != 0 ? 1 : 0));
  DeviceRequest request;
  request.changes = true;
  request.pairs = pairs.view(), request.added = more.view(), request.removed = fewer.view();
  const Found found = ask(space, finder, put(space, model), request);
  EXPECT_TRUE(pairs.isWhole() && more.isWhole() && fewer.isWhole());
  EXPECT_EQ(found.pairs, expected.pairs);
  EXPECT_EQ(found.report.errors, missing);
  EXPECT_EQ(found.report.added, added.size());
  EXPECT_EQ(found.report.removed, removed.size());
  EXPECT_EQ(found.added.size(), more.view().size());
  EXPECT_EQ(found.removed.size(), fewer.view().size());
  EXPECT_TRUE(areAmong(found.added, added) && areAmong(found.removed, removed));
}

/// The lists of a search are freed before the next search, so the finder must keep the previous
/// pairs itself.
template <class Space>
void callerOwnsTheChanges(Space& space, const DeviceOptions& options) {
  Random random(206);
  DevicePairFinder finder(options);
  DeviceRequest request;
  request.changes = true;
  SceneModel model = crowdedScene(60, random);
  finder.reserve(put(space, model), request, 5000);
  EXPECT_EQ(ask(space, finder, put(space, model), request).report.errors, 0u);
  constexpr std::uint32_t kBoth =
      bitOf(DeviceError::addedTruncated) | bitOf(DeviceError::removedTruncated);
  for (const std::uint32_t missing :
       {0u, bitOf(DeviceError::addedTruncated), bitOf(DeviceError::removedTruncated), kBoth, 0u}) {
    const Pairs before = answerOf(model).pairs;
    model = crowdedScene(60, random);
    space.clear();
    hasRoomForChanges(space, finder, before, model, missing);
  }
}

/// Boxes that overlap one other box each.
inline SceneModel couples(std::size_t n) {
  SceneModel model = crowd(n);
  for (std::size_t i = 0; i < n; ++i)
    model.boxes[i] = boxAt(5 * static_cast<float>(i / 2), 0, 0, 1);
  return model;
}

/// The finder may have kept more pairs than the capacity of the next search, or pairs of more boxes
/// than the next scene has.
template <class Space>
void keepsWhateverTheRoomIs(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  Pairs before;
  const auto step = [&](const SceneModel& model, std::size_t room) {
    SCOPED_TRACE(model.boxes.size());
    const GuardedRoom<Pair, Space> pairs(space, room), added(space, 800), removed(space, 800);
    DeviceRequest request;
    request.changes = true;
    request.pairs = pairs.view(), request.added = added.view(), request.removed = removed.view();
    const Pairs expected = answerOf(model).pairs;
    const Found found = ask(space, finder, put(space, model), request);
    EXPECT_EQ(found.report.errors, 0u);
    EXPECT_EQ(found.added, without(expected, before));
    EXPECT_EQ(found.removed, without(before, expected));
    before = expected;
  };
  step(crowd(40), 780);
  step(couples(60), 30);
  step(couples(200), 100);
  step(crowd(30), 2000);
  step(couples(20), 10);
}

/// Reserving memory must not write to the caller's lists, not even counts of 0.
template <class Space>
void reservingWritesNothing(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  SceneModel model = couples(20);
  model.worldCount = 2;
  model.worlds.assign(20, 1);
  const Indices numbers(30, 77);
  DeviceRequest request;
  request.layout = PairLayout::neighbours;
  request.countsByWorld = true;
  for (View<std::uint32_t>* list : {&request.neighbours, &request.offsets, &request.byWorld})
    *list = {space.put(numbers), numbers.size()};
  finder.reserve(put(space, model), request, 100);
  for (const View<std::uint32_t>& list : {request.neighbours, request.offsets, request.byWorld})
    EXPECT_EQ(space.get(list.data(), list.size()), numbers);
}

}  // namespace lbvh::test
