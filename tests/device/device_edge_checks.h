// SPDX-License-Identifier: Zlib
// Checks edge cases of a DevicePairFinder on the host or a GPU: minimal requests, absent arrays,
// few pairs.
#pragma once

#include "device_scene_asking.h"

namespace lbvh::test {

/// Packed boxes with one optional array, or with none.
inline SceneModel packedWith(std::size_t array, const Boxes& boxes) {
  SceneModel model;
  model.boxes = boxes;
  const auto n = static_cast<std::uint32_t>(boxes.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    if (array == 1) model.filters.push_back({1 << i % 3, 3 << i % 2});
    if (array == 2) model.bodies.push_back(i % 4 == 0 ? kNoBody : i / 5);
    if (array == 3) model.movable.push_back(i % 3 == 0);
    if (array == 4) model.margins.push_back(0.25f);
    if (array == 5) model.displacements.push_back({{0.5f, 0, -0.5f}});
    if (array == 6) model.worlds.push_back(i % 7 == 0 ? kAllWorlds : i % 2);
    if (array == 7 && i > 0) model.excluded.push_back({i - 1, i});
  }
  if (array == 6) model.worldCount = 2;
  if (array == 8) model.count = {n - 5};
  if (array == 9) model.worldCount = 3;
  return model;
}

/// Tests each array and each layout separately, because a finder may skip work that is not
/// requested.
template <class Space>
void needsNothingElse(Space& space, const DeviceOptions& options) {
  Random random(212);
  DevicePairFinder finder(options);
  for (std::size_t array = 0; array < 10; ++array) {
    SCOPED_TRACE(array);
    const SceneModel model = packedWith(array, boxSets()[0].make(150, random));
    const SceneAnswer expected = answerOf(model);
    const Neighbours neighbours = neighboursOf(expected.pairs, model.boxes.size());
    EXPECT_GT(expected.pairs.size(), 20u);
    for (const PairLayout form :
         {PairLayout::sorted, PairLayout::unsorted, PairLayout::neighbours}) {
      DeviceRequest request;
      request.layout = form;
      Found found = askForAll(space, finder, put(space, model), request);
      if (form == PairLayout::unsorted) std::sort(found.pairs.begin(), found.pairs.end());
      EXPECT_EQ(found.pairs, form == PairLayout::neighbours ? Pairs{} : expected.pairs);
      if (form == PairLayout::neighbours) EXPECT_EQ(found.neighbours, neighbours.lists);
    }
    space.clear();
  }
}

/// An array is absent if it is null or empty, even if its stride is not 0.
template <class Space>
void takesWhatIsNotThere(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  SceneModel model;
  model.boxes.assign(6, boxAt(1, 1, 1, 1));
  model.filters.assign(6, Filter{0, 0});
  DeviceScene scene = put(space, model);
  scene.filters = nullptr;
  scene.displacements = {nullptr, 0};
  EXPECT_EQ(ask(space, finder, scene, {}).pairs.size(), 15u);

  SceneModel nothing;
  nothing.count = {5};
  EXPECT_EQ(ask(space, finder, put(space, nothing), {}).report.errors,
            bitOf(DeviceError::boxCountTooLarge));
}

/// A search must list all removed pairs, even if few pairs are left.
template <class Space>
void listsAllRemovedPairs(Space& space, const DeviceOptions& options) {
  DevicePairFinder finder(options);
  DeviceRequest request;
  request.changes = true;
  SceneModel model;
  model.boxes.assign(40, boxAt(1, 1, 1, 1));
  askForAll(space, finder, put(space, model), request);
  model.boxes.resize(3);
  const GuardedRoom<Pair, Space> room(space, 10);
  request.pairs = room.view();
  const Found found = ask(space, finder, put(space, model), request);
  EXPECT_EQ(found.report.errors, 0u);
  EXPECT_EQ(found.removed.size(), 780u - 3u);
}

}  // namespace lbvh::test
