// SPDX-License-Identifier: Zlib
// Tests the state that a DevicePairFinder on the device keeps between calls. Graphs and direct
// calls alternate, and there are several kinds of reservations. Also tests the memory of the
// finder. Skipped if there is no device.
#include <gtest/gtest.h>

#include "device_arrays.cuh"
#include "device_query_checks.h"

namespace lbvh {
namespace {

using test::Accountant;
using test::DeviceArrays;
using test::endCapture;
using test::SceneModel;

class CudaDeviceGraph : public test::WithDeviceArrays {
 protected:
  template <class F>
  GraphExec captured(const F& ask) {
    cudaCheck(cudaStreamBeginCapture(memory_->stream(), cudaStreamCaptureModeGlobal));
    try {
      ask();
    } catch (...) {
      endCapture(memory_->stream());
      throw;
    }
    return endCapture(memory_->stream());
  }
  void launch(const GraphExec& graph) {
    cudaCheck(cudaGraphLaunch(graph.get(), memory_->stream()));
    memory_->wait();
  }
};

/// A row of boxes, each of which touches the next one.
SceneModel row(std::size_t n, float from = 0) {
  SceneModel model;
  for (std::size_t i = 0; i < n; ++i)
    model.boxes.push_back(test::boxAt(from + 2 * static_cast<float>(i), 0, 0, 1));
  return model;
}

DeviceRequest withChanges() {
  DeviceRequest request;
  request.changes = true;
  return request;
}

TEST_F(CudaDeviceGraph, ReservingMakesARefusedCapturePossible) {
  DevicePairFinder finder;
  const DeviceScene scene = put(*memory_, row(20));
  finder.reserve(scene, {}, 1000);
  const auto ask = [&] { finder.find(scene, withChanges(), memory_->stream()); };
  EXPECT_THROW(captured(ask), std::length_error);
  finder.reserve(scene, withChanges(), 1000);
  captured(ask);
}

TEST_F(CudaDeviceGraph, ReservationsOfTwoKindsCoexist) {
  DeviceRequest neighbours;
  neighbours.layout = PairLayout::neighbours;
  for (const DeviceRequest& request : {withChanges(), neighbours}) {
    DevicePairFinder finder;
    const DeviceScene scene = put(*memory_, row(20));
    finder.reserve(scene, request, 1000);
    finder.reserve(scene, {}, 5000);
    captured([&] { finder.find(scene, request, memory_->stream()); });
  }
}

TEST_F(CudaDeviceGraph, QueriesUseTheSearchThatRanLast) {
  DevicePairFinder finder;
  const SceneModel many = row(1500), few = row(3, -500);
  const DeviceScene large = put(*memory_, many), small = put(*memory_, few);
  finder.reserve(large, {}, 0);
  finder.reserveQueries(10, 0);
  test::QueryModel queries;
  for (int i = 0; i < 10; ++i)
    queries.rays.push_back({{200 * static_cast<float>(i), 0, 50}, {0, 0, -1}, 100});
  const RayBatch rays{{memory_->put(queries.rays), 10}, nullptr};
  RayHit* const hits = memory_->put(std::vector<RayHit>(10));
  const GraphExec search = captured([&] { finder.find(large, {}, memory_->stream()); });
  const GraphExec query = captured([&] { finder.closestHits(rays, hits, memory_->stream()); });
  finder.find(small, {}, memory_->stream());
  launch(query);
  EXPECT_EQ(memory_->get(hits, 10), closestOf(few, queries.rays, {}));
  launch(search);
  test::answersRays(*memory_, finder, many, queries);
  launch(query);
  EXPECT_EQ(memory_->get(hits, 10), closestOf(many, queries.rays, {}));
}

TEST_F(CudaDeviceGraph, MemoryGrowsWithTheScene) {
  Accountant accountant;
  DeviceOptions options;
  options.allocator = accountant.allocator();
  DevicePairFinder finder(options);
  std::size_t first = 0;
  for (std::size_t n = 1; n <= 80; ++n) {
    ask(*memory_, finder, put(*memory_, row(n)), withChanges());
    memory_->clear();
    if (n == 20) first = accountant.bytes;
  }
  EXPECT_LT(accountant.bytes, 20 * first);
}

TEST_F(CudaDeviceGraph, MemoryForHitsStaysWithinTheLimit) {
  Accountant accountant;
  DeviceOptions options;
  options.allocator = accountant.allocator();
  options.maxPairs = 10;
  DevicePairFinder finder(options);
  ask(*memory_, finder, put(*memory_, row(4)), {});
  const std::size_t before = accountant.bytes;
  const RayBatch rays{{memory_->put(std::vector<Ray>(100000)), 100000}, nullptr};
  finder.allHits(rays, {}, memory_->stream());
  memory_->wait();
  EXPECT_LT(accountant.bytes - before, 4u << 20);
}

/// Makes a search fail before it begins.
void loseSearch(DevicePairFinder& finder, const DeviceScene& scene) {
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);  // leaves an error pending
  EXPECT_THROW(finder.find(scene, withChanges(), cudaStreamPerThread), std::runtime_error);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(CudaDeviceGraph, ReservingForgetsPairsBeforeAFailedSearch) {
  DevicePairFinder finder;
  const DeviceScene scene = put(*memory_, row(20));
  ask(*memory_, finder, scene, withChanges());
  loseSearch(finder, scene);
  finder.reserve(scene, {}, 1000);
  const test::Found found = ask(*memory_, finder, scene, withChanges());
  EXPECT_EQ(found.pairs.size(), 19u);
  EXPECT_EQ(found.added, found.pairs);
  EXPECT_TRUE(found.removed.empty());
}

TEST_F(CudaDeviceGraph, CaptureAfterAFailedSearchNeedsAReservation) {
  DevicePairFinder finder;
  const DeviceScene scene = put(*memory_, row(20));
  const RayBatch rays{{memory_->put(std::vector<Ray>(10)), 10}, nullptr};
  RayHit* const hits = memory_->put(std::vector<RayHit>(10));
  DeviceLists lists;
  const auto search = [&] { lists = finder.find(scene, withChanges(), memory_->stream()); };
  const auto query = [&] { finder.closestHits(rays, hits, memory_->stream()); };
  finder.reserve(scene, withChanges(), 1000);
  search();
  loseSearch(finder, scene);
  EXPECT_THROW(captured(search), std::runtime_error);
  EXPECT_THROW(captured(query), std::runtime_error);
  finder.reserve(scene, {}, 1000);
  captured(query);
  launch(captured(search));
  const test::Found found = fetch(*memory_, lists, scene, withChanges());
  EXPECT_EQ(found.pairs.size(), 19u);
  EXPECT_EQ(found.added, found.pairs);
}

/// A row in one of several worlds.
SceneModel rowInWorlds(std::size_t n, std::uint32_t worlds) {
  SceneModel model = row(n);
  model.worlds.assign(n, 0);
  model.worldCount = worlds;
  return model;
}

TEST_F(CudaDeviceGraph, RefusedSearchIsNotInTheGraph) {
  DevicePairFinder finder;
  SceneModel bad = rowInWorlds(20, 1000);
  bad.worlds[3] = 1000;
  const DeviceScene scene = put(*memory_, rowInWorlds(20, 2)), other = put(*memory_, bad);
  finder.reserve(scene, withChanges(), 1000);
  ask(*memory_, finder, scene, withChanges());
  DeviceLists lists;
  const GraphExec graph = captured([&] {
    EXPECT_THROW(finder.find(other, withChanges(), memory_->stream()), std::length_error);
    lists = finder.find(scene, withChanges(), memory_->stream());
  });
  launch(graph);
  for (const test::Found& found : {fetch(*memory_, lists, scene, withChanges()),
                                   ask(*memory_, finder, scene, withChanges())}) {
    EXPECT_EQ(found.report.errors, 0u);
    EXPECT_EQ(found.pairs.size(), 19u);
    EXPECT_TRUE(found.added.empty()) << "the refused search has lost nothing";
  }
}

/// After an allocation has failed, some of the reserved memory is missing.
TEST_F(CudaDeviceGraph, SearchIsCapturedAsAWholeOrNotAtAll) {
  const SceneModel good = rowInWorlds(20, 2);
  SceneModel bad = good;
  bad.worlds[3] = 1000;
  std::size_t refused = 0;
  bool hasThrown = true;
  for (std::size_t more = 0; hasThrown; ++more) {
    SCOPED_TRACE(more);
    Accountant accountant;
    DeviceOptions options;
    options.allocator = accountant.allocator();
    DevicePairFinder finder(options);
    const DeviceScene scene = put(*memory_, good), other = put(*memory_, bad);
    finder.reserve(scene, {}, 1000);
    accountant.most = accountant.handedOut + more;
    try {
      finder.find(put(*memory_, rowInWorlds(700, 2)), {}, memory_->stream());
      hasThrown = false;
    } catch (const std::runtime_error&) {
    }
    accountant.most = ~std::size_t{0};
    finder.reserveQueries(1, 1);
    const GraphExec graph = captured([&] {
      try {
        finder.find(other, {}, memory_->stream());
      } catch (const std::length_error&) {
        ++refused;
      }
    });
    ask(*memory_, finder, scene, {});
    launch(graph);
    EXPECT_EQ(ask(*memory_, finder, scene, {}).report.errors, 0u);
    memory_->clear();
  }
  EXPECT_GT(refused, 3u);
}

/// Makes a search fail after a number of allocations.
/// @return false if the search needed no more allocations
bool hitsNothingFreed(DeviceArrays& space, std::size_t allocations) {
  Accountant accountant;
  DeviceOptions options;
  options.allocator = accountant.allocator();
  DevicePairFinder finder(options);
  ask(space, finder, put(space, row(40)), {});
  accountant.most = accountant.handedOut + allocations;
  bool threw = false;
  try {
    finder.find(put(space, row(3000, 100)), {}, space.stream());
  } catch (const std::runtime_error&) {
    threw = true;
  }
  accountant.most = ~std::size_t{0};
  const std::vector<Ray> rays(1, Ray{{-5, 0, 0}, {1, 0, 0}, 50});
  RayHit* const hit = space.put(std::vector<RayHit>(1));
  finder.closestHits({{space.put(rays), 1}, nullptr}, hit, space.stream());
  space.wait();
  const std::uint32_t box = space.get(hit, 1)[0].box;
  EXPECT_TRUE(box == 0 || box == kNullIndex) << box;
  return threw;
}

TEST_F(CudaDeviceGraph, QueriesAfterAFailedSearchReadNoFreedMemory) {
  std::size_t allocations = 0;
  while (hitsNothingFreed(*memory_, allocations)) ++allocations;
  EXPECT_GT(allocations, 3u);
}

}  // namespace
}  // namespace lbvh
