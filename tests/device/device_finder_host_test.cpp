// SPDX-License-Identifier: Zlib
// DevicePairFinder on the host: the same calls, the same pairs.
#include <algorithm>

#include "device_finder_checks.h"
#include "failing_new.h"

namespace lbvh {
namespace {

DeviceOptions onHost(int threads = 1) {
  DeviceOptions options;
  options.backend = Backend::host;
  options.threads = threads;
  return options;
}

test::DeviceAnswer find(DevicePairFinder& finder, const test::Boxes& boxes,
                        const std::vector<Filter>& filters) {
  const DevicePairs found = finder.find(test::view(boxes), test::view(filters), nullptr);
  const std::size_t size = std::min<std::size_t>(*found.count, found.capacity);
  return {test::Pairs(found.data, found.data + size), *found.count, found.capacity};
}

TEST(DeviceFinderOnHost, AgreesWithBruteForce) {
  for (const int threads : {1, 3}) test::agreesWithBruteForce(onHost(threads), find);
}

TEST(DeviceFinderOnHost, RefusesWhatDoesNotFit) {
  test::refusesWhatDoesNotFit(onHost());
  EXPECT_THROW(DevicePairFinder{onHost(-1)}, std::invalid_argument);
}

TEST(DeviceFinderOnHost, ASearchStopsAtItsLimit) { test::stopsAtItsLimit(onHost(), find); }

TEST(DeviceFinderOnHost, AfterAStoppedSearchAllPairsAreAdded) {
  DeviceOptions options = onHost();
  options.maxPairs = 10;
  DevicePairFinder finder(options);
  DeviceRequest request;
  request.changes = true;
  test::Boxes boxes(4, test::boxAt(0, 0, 0, 1));
  EXPECT_EQ(finder.find(DeviceScene::of(test::view(boxes)), request, nullptr).report->added, 6u);
  const test::Boxes many(40, test::boxAt(0, 0, 0, 1));
  const DeviceLists stopped = finder.find(DeviceScene::of(test::view(many)), request, nullptr);
  EXPECT_EQ(stopped.report->errors, kSearchStopped);
  EXPECT_EQ(stopped.report->added + stopped.report->removed, 0u);
  EXPECT_EQ(stopped.pairs.size + stopped.added.size + stopped.removed.size, 0u);
  boxes.pop_back();
  const DeviceLists last = finder.find(DeviceScene::of(test::view(boxes)), request, nullptr);
  EXPECT_EQ(last.report->added, 3u);
  EXPECT_EQ(last.report->removed, 0u);
}

/// The engine has dropped its own list, as it may. Each search has more pairs than the one before,
/// so that memory must grow.
TEST(DeviceFinderOnHost, AfterBadAllocAllPairsAreAdded) {
  DeviceRequest request;
  request.changes = true;
  const test::Boxes few(10, test::boxAt(0, 0, 0, 1)), many(100, test::boxAt(0, 0, 0, 1));
  bool hasFailed = true;
  long allocations = 0;
  for (; hasFailed; ++allocations) {
    SCOPED_TRACE(allocations);
    DevicePairFinder finder(onHost());
    EXPECT_EQ(finder.find(DeviceScene::of(test::view(few)), request, nullptr).report->added, 45u);
    hasFailed = false;
    try {
      failing_new::callWith(
          allocations, [&] { finder.find(DeviceScene::of(test::view(many)), request, nullptr); });
    } catch (const std::bad_alloc&) {
      hasFailed = true;
    }
    if (!hasFailed) break;
    const DeviceLists after = finder.find(DeviceScene::of(test::view(many)), request, nullptr);
    EXPECT_EQ(after.report->added, 4950u);
    EXPECT_EQ(after.added.size, 4950u);
    EXPECT_EQ(after.report->removed, 0u);
  }
  EXPECT_GE(allocations, 10);
}

TEST(DeviceFinderOnHost, HasTheRoomThatWasReserved) {
  DeviceOptions options = onHost();
  options.leastCapacity = 7;
  DevicePairFinder finder(options);
  EXPECT_EQ(find(finder, {}, {}).capacity, 7u);
  finder.reserve(10, 0);
  EXPECT_EQ(find(finder, {}, {}).capacity, 80u);
  finder.reserve(10, 9);
  EXPECT_EQ(find(finder, {}, {}).capacity, 80u);
}

TEST(DeviceFinderOnHost, MovesWithItsPairs) {
  const test::Boxes boxes(3, test::boxAt(0, 0, 0, 1));
  DevicePairFinder finder(onHost());
  const DevicePairs found = finder.find(test::view(boxes), {}, nullptr);
  const DevicePairFinder other(std::move(finder));
  EXPECT_EQ(*found.count, 3u);
  EXPECT_EQ(test::Pairs(found.data, found.data + 3), test::bruteForce(boxes));
}

TEST(DeviceFinderOnHost, HasNoStreamsAndGuessesNoSpace) {
  const test::Boxes boxes(3, test::boxAt(0, 0, 0, 1));
  DevicePairFinder finder(onHost());
  int stream = 0;
  EXPECT_THROW(finder.find(test::view(boxes), {}, reinterpret_cast<CUstream_st*>(&stream)),
               std::invalid_argument);
  DeviceOptions options;
  options.backend = Backend::automatic;
  EXPECT_THROW(DevicePairFinder{options}, std::invalid_argument);
}

}  // namespace
}  // namespace lbvh
