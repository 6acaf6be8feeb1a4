// SPDX-License-Identifier: Zlib
// DevicePairFinder's searches and queries on the host, whose memory is that of vectors.
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
  options.backend = Backend::host;
  options.threads = threads;
  return options;
}

/// Runs a check on one thread, and on three.
template <class Check>
void onThreads(const Check& check) {
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(threads);
    HostArrays memory;
    check(memory, onHost(threads));
  }
}

TEST(DeviceScene, FindsWhatTheModelSays) {
  onThreads(
      [](auto& memory, const auto& options) { test::findsWhatTheModelSays(memory, options, 400); });
}

TEST(DeviceScene, FindsPairsInLargeWorlds) {
  onThreads(
      [](auto& memory, const auto& options) { test::findsPairsInLargeWorlds(memory, options); });
}

TEST(DeviceScene, NeedsNothingElse) {
  onThreads([](auto& memory, const auto& options) { test::needsNothingElse(memory, options); });
}

TEST(DeviceScene, TakesWhatIsNotThere) {
  onThreads([](auto& memory, const auto& options) { test::takesWhatIsNotThere(memory, options); });
}

TEST(DeviceScene, ListsAllRemovedPairs) {
  onThreads([](auto& memory, const auto& options) { test::listsAllRemovedPairs(memory, options); });
}

TEST(DeviceScene, SweepsBeforeItGrows) {
  onThreads([](auto& memory, const auto& options) { test::sweepsBeforeItGrows(memory, options); });
}

TEST(DeviceScene, StopsOnlyBeyondItsLimit) {
  onThreads(
      [](auto& memory, const auto& options) { test::stopsOnlyBeyondItsLimit(memory, options); });
}

TEST(DeviceScene, AllFormsAgree) {
  onThreads([](auto& memory, const auto& options) { test::allFormsAgree(memory, options, 120); });
}

TEST(DeviceScene, TellsWhatHasChanged) {
  onThreads([](auto& memory, const auto& options) { test::tellsWhatHasChanged(memory, options); });
}

TEST(DeviceScene, KeepsWhateverTheRoomIs) {
  onThreads(
      [](auto& memory, const auto& options) { test::keepsWhateverTheRoomIs(memory, options); });
}

TEST(DeviceScene, ReservingWritesNothing) {
  onThreads(
      [](auto& memory, const auto& options) { test::reservingWritesNothing(memory, options); });
}

TEST(DeviceScene, TheCallerMayOwnTheLists) {
  onThreads([](auto& memory, const auto& options) {
    test::callerOwnsTheLists(memory, options);
    test::callerOwnsTheNeighbours(memory, options);
    test::callerOwnsTheChanges(memory, options);
  });
}

TEST(DeviceScene, HasTheRoomThatWasReserved) {
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

TEST(DeviceScene, HasNoStreams) {
  DevicePairFinder finder(onHost(1));
  int stream = 0;
  auto* const some = reinterpret_cast<CUstream_st*>(&stream);
  EXPECT_THROW(finder.find(DeviceScene{}, {}, some), std::invalid_argument);
  EXPECT_THROW(finder.closestHits({}, nullptr, some), std::invalid_argument);
  EXPECT_THROW(finder.anyHits({}, nullptr, some), std::invalid_argument);
  EXPECT_THROW(finder.allHits(RayBatch{}, {}, some), std::invalid_argument);
  EXPECT_THROW(finder.allHits(BoxBatch{}, {}, some), std::invalid_argument);
}

TEST(DeviceScene, ReportsWhatOnlyTheDeviceSees) {
  onThreads([](auto& memory, const auto& options) {
    test::reportsWhatOnlyTheDeviceSees(memory, options);
  });
}

TEST(DeviceScene, ReportsNanInPackedBoxes) {
  onThreads(
      [](auto& memory, const auto& options) { test::reportsNanInPackedBoxes(memory, options); });
}

TEST(DeviceQueries, StopOnlyBeyondTheLimit) {
  onThreads([](auto& memory, const auto& options) {
    test::stopsBatchesOnlyBeyondTheLimit(memory, options);
  });
}

TEST(DeviceQueries, AreAnsweredAsTheModelSays) {
  onThreads([](auto& memory, const auto& options) { test::answersQueries(memory, options, 200); });
}

TEST(DeviceQueries, HitNothingBeforeASearch) {
  onThreads(
      [](auto& memory, const auto& options) { test::hitsNothingBeforeASearch(memory, options); });
}

TEST(DeviceQueries, RoomForThemIsNoSearch) {
  onThreads([](auto& memory, const auto& options) {
    test::reservesQueriesAfterASearch(memory, options);
  });
}

TEST(DeviceQueries, WithoutWorldsAllBoxesAreInWorldZero) {
  onThreads([](auto& memory, const auto& options) {
    test::withoutWorldsAllBoxesAreInWorldZero(memory, options);
  });
}

TEST(DeviceQueries, TheLeastIndexWinsATie) {
  onThreads(
      [](auto& memory, const auto& options) { test::theLeastIndexWinsATie(memory, options); });
}

TEST(DeviceQueries, TheCallerMayOwnTheHits) {
  onThreads([](auto& memory, const auto& options) { test::callerOwnsTheHits(memory, options); });
}

}  // namespace
}  // namespace lbvh
