// SPDX-License-Identifier: Zlib
// Tests DevicePairFinder on the host: its calls must give the same pairs as on a device.
#include <algorithm>

#include "device_finder_checks.h"
#include "failing_new.h"

namespace lbvh {
namespace {

DeviceOptions onHost(int threads = 1) {
  DeviceOptions options;
  options.memory = MemorySpace::host;
  options.threads = threads;
  return options;
}

test::DeviceAnswer find(DevicePairFinder& finder, const test::Boxes& boxes,
                        const std::vector<Filter>& filters) {
  const Filter* const any = filters.empty() ? nullptr : filters.data();
  const DeviceLists found = finder.find(DeviceScene::of(test::view(boxes), any), {}, nullptr);
  const std::size_t size = std::min<std::size_t>(found.report->pairs, found.pairs.size());
  return {test::Pairs(found.pairs.data(), found.pairs.data() + size), found.report->pairs,
          found.pairs.size()};
}

TEST(DeviceFinderOnHost, AgreesWithBruteForce) {
  for (const int threads : {1, 3}) test::agreesWithBruteForce(onHost(threads), find);
}

TEST(DeviceFinderOnHost, RefusesTooManyBoxesAndPairs) {
  test::refusesWhatDoesNotFit(onHost());
  EXPECT_THROW(DevicePairFinder{onHost(-1)}, std::invalid_argument);
}

TEST(DeviceFinderOnHost, SearchStopsAtMaxPairs) { test::stopsAtItsLimit(onHost(), find); }

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
  EXPECT_EQ(stopped.report->errors, bitOf(DeviceError::searchStopped));
  EXPECT_EQ(stopped.report->added + stopped.report->removed, 0u);
  EXPECT_EQ(stopped.pairs.size() + stopped.added.size() + stopped.removed.size(), 0u);
  boxes.pop_back();
  const DeviceLists last = finder.find(DeviceScene::of(test::view(boxes)), request, nullptr);
  EXPECT_EQ(last.report->added, 3u);
  EXPECT_EQ(last.report->removed, 0u);
}

/// After an error all pairs must be reported as added, because the engine may have dropped its own
/// list. Each finder's second search has more pairs than the first, so memory must grow.
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
    EXPECT_EQ(after.added.size(), 4950u);
    EXPECT_EQ(after.report->removed, 0u);
  }
  EXPECT_GE(allocations, 8);
}

TEST(DeviceFinderOnHost, HasTheReservedCapacity) {
  DeviceOptions options = onHost();
  options.initialPairCapacity = 7;
  DevicePairFinder finder(options);
  EXPECT_EQ(find(finder, {}, {}).capacity, 7u);
  const test::Boxes ten(10, test::boxAt(0, 0, 0, 1));
  finder.reserve(DeviceScene::of(test::view(ten)), {}, 0);
  EXPECT_EQ(find(finder, {}, {}).capacity, 80u);
  finder.reserve(DeviceScene::of(test::view(ten)), {}, 9);
  EXPECT_EQ(find(finder, {}, {}).capacity, 80u);
}

/// The list is so long that a search writes it in pieces.
TEST(DeviceFinderOnHost, ARuleAppliesToListsOfThousands) {
  constexpr std::uint32_t kSmall = 9000, kLarge = 4000;
  test::Boxes boxes;
  for (std::uint32_t i = 0; i <= kSmall; ++i)
    boxes.push_back(test::boxAt(2 * static_cast<float>(i), 0, 0, 0.5f));
  boxes[kLarge] = {{-1, -1, -1}, {3.0f * kSmall, 1, 1}};
  std::vector<std::uint32_t> bodies(boxes.size());
  for (std::uint32_t i = 0; i <= kSmall; ++i) bodies[i] = i % 3;
  DeviceScene scene = DeviceScene::of(test::view(boxes));
  scene.bodies = bodies.data();
  DeviceRequest request;
  request.layout = PairLayout::neighbours;
  DevicePairFinder finder(onHost());
  const DeviceLists found = finder.find(scene, request, nullptr);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i <= kSmall; ++i)
    if (i % 3 != kLarge % 3) expected.push_back(i);
  const std::uint32_t* const lists = found.neighbours.data();
  EXPECT_EQ(
      std::vector<std::uint32_t>(lists + found.offsets[kLarge], lists + found.offsets[kLarge + 1]),
      expected);
  EXPECT_EQ(found.report->pairs, expected.size());
}

TEST(DeviceFinderOnHost, MovesWithItsPairs) {
  const test::Boxes boxes(3, test::boxAt(0, 0, 0, 1));
  DevicePairFinder finder(onHost());
  const DeviceLists found = finder.find(DeviceScene::of(test::view(boxes)), {}, nullptr);
  const DevicePairFinder other(std::move(finder));
  EXPECT_EQ(found.report->pairs, 3u);
  EXPECT_EQ(test::Pairs(found.pairs.data(), found.pairs.data() + 3), test::bruteForce(boxes));
}

TEST(DeviceFinderOnHost, RefusesStreams) {
  const test::Boxes boxes(3, test::boxAt(0, 0, 0, 1));
  DevicePairFinder finder(onHost());
  int stream = 0;
  EXPECT_THROW(
      finder.find(DeviceScene::of(test::view(boxes)), {}, reinterpret_cast<CUstream_st*>(&stream)),
      std::invalid_argument);
}

}  // namespace
}  // namespace lbvh
