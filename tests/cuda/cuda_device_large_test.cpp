// SPDX-License-Identifier: Zlib
// Tests a DevicePairFinder with scenes that are too large for brute force. The device must find the
// same pairs as the host. Skipped if there is no device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device_arrays.cuh"
#include "device_scene_asking.h"
#include "host_arrays.h"

namespace lbvh {
namespace {

using test::DeviceArrays;
using test::Found;
using test::HostArrays;
using test::Random;
using test::SceneModel;

/// Worlds with 1 to 2,048 boxes each, all in the same region of space. Some boxes and a plane are
/// in all worlds.
SceneModel manyWorlds(std::size_t n, Random& random) {
  SceneModel model;
  while (model.boxes.size() < n) {
    const std::size_t size = std::size_t{1} << random.below(12);
    const float side = std::cbrt(static_cast<float>(size));
    for (std::size_t i = 0; i < size; ++i) {
      model.boxes.push_back(test::boxAt(side * random.uniform(), side * random.uniform(),
                                        side * random.uniform(), 0.5f));
      model.worlds.push_back(random.below(3000) == 0 ? kAllWorlds : model.worldCount);
    }
    ++model.worldCount;
  }
  const float inf = std::numeric_limits<float>::infinity();
  model.boxes.push_back({{-inf, -inf, -inf}, {inf, 0.3f, inf}});
  model.worlds.push_back(kAllWorlds);
  return model;
}

template <class Space>
Found found(Space& space, MemorySpace memory, const SceneModel& model, PairLayout form) {
  DeviceOptions options;
  options.memory = memory;
  options.threads = 1;
  options.initialPairCapacity = 16 * model.boxes.size();
  DevicePairFinder finder(options);
  DeviceRequest request;
  request.layout = form;
  request.countsByWorld = true;
  return ask(space, finder, put(space, model), request);
}

TEST(CudaDeviceLarge, FindsWhatTheHostFinds) {
  if (const std::string why = whyUnavailable(Backend::cuda); !why.empty()) GTEST_SKIP() << why;
  Random random(410);
  // Enough boxes for a radix sort; they fill 137 groups of blocks.
  const SceneModel model = manyWorlds(140000, random);
  DeviceArrays device;
  HostArrays host;
  for (const PairLayout form : {PairLayout::sorted, PairLayout::neighbours}) {
    const Found here = found(host, MemorySpace::host, model, form);
    const Found there = found(device, MemorySpace::device, model, form);
    EXPECT_GT(here.report.pairs, model.boxes.size());
    EXPECT_EQ(there.report.pairs, here.report.pairs);
    EXPECT_EQ(there.report.errors, 0u);
    EXPECT_EQ(there.pairs, here.pairs);
    EXPECT_EQ(there.offsets, here.offsets);
    EXPECT_EQ(there.neighbours, here.neighbours);
    EXPECT_EQ(there.byWorld, here.byWorld);
  }
}

/// The boxes of three queries. The first overlaps all boxes of the scene, which are more than a
/// window of compare_hub.cuh holds (65,536). The others overlap few boxes.
test::Boxes largeQueries() {
  constexpr float kFar = 1e30f;
  return {{{-kFar, -kFar, -kFar}, {kFar, kFar, kFar}},
          {{0, 0, 0}, {2, 2, 2}},
          {{-kFar, 0, 0}, {1, kFar, 0.5f}}};
}

template <class Space>
test::FoundHits foundHits(Space& space, MemorySpace memory, const SceneModel& model) {
  DeviceOptions options;
  options.memory = memory;
  options.threads = 1;
  DevicePairFinder finder(options);
  ask(space, finder, put(space, model), {});
  const test::Boxes queries = largeQueries();
  const BoxBatch batch{{space.put(queries), queries.size()}, nullptr};
  return askForHits(space, finder, batch, queries.size());
}

TEST(CudaDeviceLarge, QueriesHitWhatTheyHitOnTheHost) {
  if (const std::string why = whyUnavailable(Backend::cuda); !why.empty()) GTEST_SKIP() << why;
  Random random(411);
  SceneModel model;
  for (int i = 0; i < 70000; ++i)
    model.boxes.push_back(
        test::boxAt(40 * random.uniform(), 40 * random.uniform(), 40 * random.uniform(), 0.1f));
  DeviceArrays device;
  HostArrays host;
  const test::FoundHits here = foundHits(host, MemorySpace::host, model);
  const test::FoundHits there = foundHits(device, MemorySpace::device, model);
  EXPECT_EQ(here.of[0].size(), model.boxes.size());
  EXPECT_EQ(there.report.hits, here.report.hits);
  EXPECT_EQ(there.report.errors, 0u);
  EXPECT_TRUE(there.of == here.of);
}

}  // namespace
}  // namespace lbvh
