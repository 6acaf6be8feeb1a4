// SPDX-License-Identifier: Zlib
// Checks ray queries and box queries on the host or a GPU. These queries search the boxes of a
// DevicePairFinder's last search.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device_scene_asking.h"

namespace lbvh::test {

/// Rays and boxes, and perhaps a world for each.
struct QueryModel {
  std::vector<Ray> rays;
  Boxes boxes;
  Indices worlds;  ///< worlds of the rays and of the boxes
};

inline QueryModel randomQuestions(std::size_t n, const SceneModel& scene, Random& random) {
  QueryModel queries{randomRays(n, random), randomQueries(n, random), {}};
  const std::uint32_t kind = random.below(3);
  if (kind > 0) queries.worlds = randomWorlds(n, scene, kind == 2, random);
  return queries;
}

template <class Space>
void answersRays(Space& space, DevicePairFinder& finder, const SceneModel& scene,
                 const QueryModel& queries) {
  const std::size_t n = queries.rays.size();
  const RayBatch batch{{space.put(queries.rays), n}, space.put(queries.worlds)};
  const GuardedRoom<RayHit, Space> closest(space, n);
  const GuardedRoom<std::uint8_t, Space> any(space, n);
  finder.closestHits(batch, closest.view().data(), space.stream());
  finder.anyHits(batch, any.view().data(), space.stream());
  const FoundHits all = askForHits(space, finder, batch, n);
  space.wait();
  EXPECT_EQ(space.get(closest.view().data(), n), closestOf(scene, queries.rays, queries.worlds));
  EXPECT_TRUE(closest.isWhole() && any.isWhole());
  const std::vector<Indices> expected = hitsOf(scene, queries.rays, queries.worlds);
  EXPECT_EQ(all.of, expected);
  std::vector<std::uint8_t> hit;
  for (const Indices& boxes : expected) hit.push_back(boxes.empty() ? 0 : 1);
  EXPECT_EQ(space.get(any.view().data(), n), hit);
  EXPECT_EQ(all.report.has(DeviceError::worldOutOfRange), haveUnknown(scene, queries.worlds));
  EXPECT_EQ(all.report.errors & kSomeAreCut, 0u);
}

template <class Space>
void answersBoxes(Space& space, DevicePairFinder& finder, const SceneModel& scene,
                  const QueryModel& queries) {
  const std::size_t n = queries.boxes.size();
  const BoxBatch batch{{space.put(queries.boxes), n}, space.put(queries.worlds)};
  const FoundHits all = askForHits(space, finder, batch, n);
  EXPECT_EQ(all.of, hitsOf(scene, queries.boxes, queries.worlds));
  EXPECT_EQ(all.report.has(DeviceError::worldOutOfRange), haveUnknown(scene, queries.worlds));
  EXPECT_EQ(all.report.errors & kSomeAreCut, 0u);
}

/// The finder keeps the boxes of its last search, so the scene's arrays may be freed before a
/// query.
template <class Space>
void answersQueries(Space& space, const DeviceOptions& options, std::size_t scenes) {
  constexpr std::size_t kSizes[] = {33, 0, 300, 1, 2, 1025};
  constexpr PairLayout kForms[] = {PairLayout::sorted, PairLayout::neighbours,
                                   PairLayout::unsorted};
  Random random(221);
  DevicePairFinder finder(options);
  for (std::size_t i = 0; i < scenes; ++i) {
    SCOPED_TRACE("scene " + std::to_string(i));
    const SceneModel scene = spoiltScene(kSizes[i % std::size(kSizes)], random);
    DeviceRequest request;
    request.layout = kForms[i % 3];
    ask(space, finder, put(space, scene), request);
    space.clear();
    const QueryModel queries =
        randomQuestions(i % 5 == 4 ? 0 : 1 + random.below(60), scene, random);
    answersRays(space, finder, scene, queries);
    answersBoxes(space, finder, scene, queries);
    space.clear();
  }
}

template <class Space>
void hitsNothingBeforeASearch(Space& space, const DeviceOptions& options) {
  Random random(222);
  DevicePairFinder finder(options);
  const SceneModel nothing;
  const QueryModel queries{randomRays(20, random), randomQueries(20, random), {}};
  const auto hitsNothing = [&] {
    answersRays(space, finder, nothing, queries);
    answersBoxes(space, finder, nothing, queries);
  };
  hitsNothing();
  ask(space, finder, put(space, randomScene(50, random)), {});
  ask(space, finder, put(space, nothing), {});
  hitsNothing();
  SceneModel noneCounts = randomScene(50, random);
  noneCounts.count = {0};
  ask(space, finder, put(space, noneCounts), {});
  hitsNothing();
}

/// Reserving memory for queries keeps the last search, so queries still hit its boxes.
template <class Space>
void reservesQueriesAfterASearch(Space& space, const DeviceOptions& options) {
  Random random(224);
  DevicePairFinder finder(options);
  const SceneModel scene = randomScene(70, random);
  ask(space, finder, put(space, scene), {});
  finder.reserveQueries(20, 1000);
  const QueryModel queries{randomRays(20, random), randomQueries(20, random), {}};
  answersRays(space, finder, scene, queries);
  answersBoxes(space, finder, scene, queries);
}

/// 40 boxes are at the same distance, in three worlds.
template <class Space>
void theLeastIndexWinsATie(Space& space, const DeviceOptions& options) {
  SceneModel scene;
  scene.boxes.assign(40, boxAt(5, 0, 0, 1));
  // These two also begin at x = 4.
  scene.boxes[0] = scene.boxes[20] = boxAt(4.5f, 0, 0, 0.5f);
  scene.worldCount = 3;
  for (std::uint32_t i = 0; i < 40; ++i) scene.worlds.push_back(2 - i / 16);
  scene.worlds[39] = kAllWorlds;
  DevicePairFinder finder(options);
  ask(space, finder, put(space, scene), {});
  const Ray along{{0, 0, 0}, {2, 0, 0}, 100}, inside{{4.5f, 0, 0}, {0, 1, 0}, 0};
  QueryModel queries;
  for (const std::uint32_t world : {0u, 1u, 2u, kAllWorlds}) {
    queries.rays.insert(queries.rays.end(), {along, inside});
    queries.worlds.insert(queries.worlds.end(), {world, world});
  }
  queries.boxes.assign(8, boxAt(3, 0, 0, 1));  // touches all boxes
  const std::vector<RayHit> expected{{32, 2}, {32, 0}, {16, 2}, {16, 0},
                                     {0, 2},  {0, 0},  {0, 2},  {0, 0}};
  EXPECT_EQ(closestOf(scene, queries.rays, queries.worlds), expected);
  answersRays(space, finder, scene, queries);
  answersBoxes(space, finder, scene, queries);
}

/// Five queries of nine boxes have 45 hits, which is the maximum that the options allow.
template <class Space>
void stopsBatchesOnlyBeyondTheLimit(Space& space, DeviceOptions options) {
  options.maxPairs = 45;
  DevicePairFinder finder(options);
  const Boxes queries(5, boxAt(0, 0, 0, 1));
  const BoxBatch batch{{space.put(queries), 5}, nullptr};
  for (const std::size_t n : {9u, 10u, 9u}) {
    SCOPED_TRACE(n);
    SceneModel scene;
    scene.boxes.assign(n, boxAt(1, 1, 1, 1));
    ask(space, finder, put(space, scene), {});
    const FoundHits found = askForHits(space, finder, batch, 5);
    if (n == 9) EXPECT_EQ(found.of, hitsOf(scene, queries, {}));
    EXPECT_EQ(found.report.has(DeviceError::searchStopped), n > 9);
    EXPECT_EQ(found.report.hits > options.maxPairs, n > 9);
  }
}

template <class Space>
void callerOwnsTheHits(Space& space, const DeviceOptions& options) {
  Random random(223);
  SceneModel scene;
  scene.boxes.assign(30, boxAt(1, 1, 1, 1));
  DevicePairFinder finder(options);
  ask(space, finder, put(space, scene), {});
  const std::vector<Ray> rays(7, Ray{{0, 0, 0}, {1, 1, 1}, 1});
  const Boxes boxes(7, boxAt(2, 2, 2, 1));
  const RayBatch rayBatch{{space.put(rays), 7}, nullptr};
  const BoxBatch boxBatch{{space.put(boxes), 7}, nullptr};
  const std::vector<Indices> expected = hitsOf(scene, rays, {});
  const auto check = [&](const auto& batch, std::size_t size) {
    const GuardedRoom<std::uint32_t, Space> room(space, size);
    const DeviceHits hits = finder.allHits(batch, room.view(), space.stream());
    space.wait();
    EXPECT_EQ(hits.boxes.data(), room.view().data());
    EXPECT_EQ(hits.boxes.size(), size);
    const QueryReport report = space.get(hits.report, 1)[0];
    EXPECT_EQ(report.hits, 210u);
    EXPECT_EQ(report.errors, size < 210 ? bitOf(DeviceError::pairsTruncated) : 0u);
    EXPECT_TRUE(room.isWhole());
    for (const std::uint32_t box : firstOf(space, hits.boxes, 210)) EXPECT_LT(box, 30u);
    if (size >= 210) EXPECT_EQ(fetchHits(space, hits, 7).of, expected);
  };
  for (const std::size_t size : {210u, 209u, 0u, 250u}) {
    SCOPED_TRACE(size);
    check(rayBatch, size);
    check(boxBatch, size);
  }
}

/// Without worlds, all boxes are in world 0, even if worldCount is 0. Packed boxes are searched in
/// place. If counts by world are requested, the boxes are gathered first.
template <class Space>
void withoutWorldsAllBoxesAreInWorldZero(Space& space, const DeviceOptions& options) {
  SceneModel scene;
  scene.boxes.assign(6, boxAt(1, 1, 1, 1));
  const QueryModel queries{std::vector<Ray>(3, Ray{{0, 0, 0}, {1, 1, 1}, 1}),
                           Boxes(3, boxAt(2, 2, 2, 1)),
                           {0, kAllWorlds, 1}};
  const Indices all{0, 1, 2, 3, 4, 5};
  EXPECT_EQ(hitsOf(scene, queries.rays, queries.worlds), (std::vector<Indices>{all, all, {}}));
  const std::vector<float> packed = scene.packed();
  const float* there = space.put(packed);
  DeviceScene asked;
  asked.boxCapacity = scene.boxes.size();
  asked.min = {there, sizeof(Aabb)};
  asked.max = {there + 3, sizeof(Aabb)};
  for (const bool counts : {false, true}) {
    SCOPED_TRACE(counts);
    DeviceRequest request;
    request.countsByWorld = counts;
    DevicePairFinder finder(options);
    const Found found = ask(space, finder, asked, request);
    EXPECT_EQ(found.report.errors, 0u);
    if (counts) EXPECT_EQ(found.byWorld, Indices{15});
    answersRays(space, finder, scene, queries);
    answersBoxes(space, finder, scene, queries);
  }
}

}  // namespace lbvh::test
