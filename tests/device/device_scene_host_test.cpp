// SPDX-License-Identifier: Zlib
// Tests DevicePairFinder's searches and queries on the host.
#include <gtest/gtest.h>

#include "device_edge_checks.h"
#include "device_query_checks.h"
#include "device_scene_checks.h"
#include "device_scene_faults.h"
#include "host_arrays.h"

namespace lbvh {
namespace {

using test::HostArrays;

DeviceOptions onHost(int threads) {
  DeviceOptions options;
  options.memory = MemorySpace::host;
  options.threads = threads;
  return options;
}

/// Runs a check with one thread, then with three.
template <class Check>
void onThreads(const Check& check) {
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(threads);
    HostArrays memory;
    check(memory, onHost(threads));
  }
}

TEST(DeviceScene, FindsThePairsOfTheModel) {
  onThreads(
      [](auto& memory, const auto& options) { test::findsWhatTheModelSays(memory, options, 400); });
}

TEST(DeviceScene, FindsPairsInLargeWorlds) {
  onThreads(
      [](auto& memory, const auto& options) { test::findsPairsInLargeWorlds(memory, options); });
}

TEST(DeviceScene, WorksWithEachArrayAlone) {
  onThreads([](auto& memory, const auto& options) { test::needsNothingElse(memory, options); });
}

TEST(DeviceScene, AcceptsAbsentArrays) {
  onThreads([](auto& memory, const auto& options) { test::takesWhatIsNotThere(memory, options); });
}

TEST(DeviceScene, ListsAllRemovedPairs) {
  onThreads([](auto& memory, const auto& options) { test::listsAllRemovedPairs(memory, options); });
}

TEST(DeviceScene, AddsDisplacementsBeforeMargins) {
  onThreads([](auto& memory, const auto& options) { test::sweepsBeforeItGrows(memory, options); });
}

TEST(DeviceScene, StopsOnlyBeyondMaxPairs) {
  onThreads(
      [](auto& memory, const auto& options) { test::stopsOnlyBeyondItsLimit(memory, options); });
}

TEST(DeviceScene, AllLayoutsAgree) {
  onThreads([](auto& memory, const auto& options) { test::allFormsAgree(memory, options, 120); });
}

TEST(DeviceScene, ReportsChanges) {
  onThreads([](auto& memory, const auto& options) { test::tellsWhatHasChanged(memory, options); });
}

TEST(DeviceScene, KeepsPreviousPairsWhateverTheCapacity) {
  onThreads(
      [](auto& memory, const auto& options) { test::keepsWhateverTheRoomIs(memory, options); });
}

TEST(DeviceScene, ReservingWritesNothing) {
  onThreads(
      [](auto& memory, const auto& options) { test::reservingWritesNothing(memory, options); });
}

TEST(DeviceScene, CallerMayOwnTheLists) {
  onThreads([](auto& memory, const auto& options) {
    test::callerOwnsTheLists(memory, options);
    test::callerOwnsTheNeighbours(memory, options);
    test::callerOwnsTheChanges(memory, options);
  });
}

TEST(DeviceScene, HasTheReservedCapacity) {
  onThreads(
      [](auto& memory, const auto& options) { test::hasTheRoomThatWasReserved(memory, options); });
}

TEST(DeviceScene, RefusesBadInput) {
  HostArrays memory;
  test::refusesBadScenes(memory, onHost(1));
  test::refusesBadRequests(memory, onHost(1));
  test::refusesBadQueries(memory, onHost(1));
  test::refusesHalfAnAllocator(memory, onHost(1));
}

TEST(DeviceScene, RefusesStreams) {
  DevicePairFinder finder(onHost(1));
  int stream = 0;
  auto* const some = reinterpret_cast<CUstream_st*>(&stream);
  EXPECT_THROW(finder.find(DeviceScene{}, {}, some), std::invalid_argument);
  EXPECT_THROW(finder.closestHits({}, nullptr, some), std::invalid_argument);
  EXPECT_THROW(finder.anyHits({}, nullptr, some), std::invalid_argument);
  EXPECT_THROW(finder.allHits(RayBatch{}, {}, some), std::invalid_argument);
  EXPECT_THROW(finder.allHits(BoxBatch{}, {}, some), std::invalid_argument);
}

TEST(DeviceScene, ReportsErrorsInTheArrays) {
  onThreads([](auto& memory, const auto& options) {
    test::reportsWhatOnlyTheDeviceSees(memory, options);
  });
}

TEST(DeviceScene, ReportsNanInPackedBoxes) {
  onThreads(
      [](auto& memory, const auto& options) { test::reportsNanInPackedBoxes(memory, options); });
}

TEST(DeviceQueries, StopOnlyBeyondMaxPairs) {
  onThreads([](auto& memory, const auto& options) {
    test::stopsBatchesOnlyBeyondTheLimit(memory, options);
  });
}

TEST(DeviceQueries, HaveTheHitsOfTheModel) {
  onThreads([](auto& memory, const auto& options) { test::answersQueries(memory, options, 200); });
}

TEST(DeviceQueries, HitNothingBeforeASearch) {
  onThreads(
      [](auto& memory, const auto& options) { test::hitsNothingBeforeASearch(memory, options); });
}

TEST(DeviceQueries, KeepTheLastSearchWhenReserved) {
  onThreads([](auto& memory, const auto& options) {
    test::reservesQueriesAfterASearch(memory, options);
  });
}

TEST(DeviceQueries, WithoutWorldsAllBoxesAreInWorldZero) {
  onThreads([](auto& memory, const auto& options) {
    test::withoutWorldsAllBoxesAreInWorldZero(memory, options);
  });
}

TEST(DeviceQueries, SmallestIndexWinsATie) {
  onThreads(
      [](auto& memory, const auto& options) { test::theLeastIndexWinsATie(memory, options); });
}

TEST(DeviceQueries, CallerMayOwnTheHits) {
  onThreads([](auto& memory, const auto& options) { test::callerOwnsTheHits(memory, options); });
}

}  // namespace
}  // namespace lbvh
