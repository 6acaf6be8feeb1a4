// SPDX-License-Identifier: Zlib
// Tests DevicePairFinder with boxes in device memory. It must find the same pairs in the same order
// as on the host, in plain streams and in captured graphs. Skipped if there is no device.
#include "broadphase/device_pair_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "broadphase/choose/adaptive.h"
#include "device_arrays.cuh"
#include "device_finder_checks.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::countOf;
using test::OnDevice;
using test::Pairs;
using test::pairsOf;
using test::pairsOnHost;
using test::Random;
using test::reserve;

class DeviceFinder : public test::OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    cudaStreamDestroy(stream_);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  using Answer = test::DeviceAnswer;

  /// Searches on a stream, waits for the stream, and only then reads the lists.
  Answer find(DevicePairFinder& finder, const Boxes& boxes,
              const std::vector<Filter>& filters = {}) {
    boxes_.assign(boxes);
    filters_.assign(filters);
    const DeviceLists found =
        finder.find(DeviceScene::of(boxes_.view(), filters_.view().data()), {}, stream_);
    cudaCheck(cudaStreamSynchronize(stream_));
    return {pairsOf(found), countOf(found), found.pairs.size()};
  }

  auto finding() {
    return [this](DevicePairFinder& finder, const Boxes& boxes,
                  const std::vector<Filter>& filters) { return find(finder, boxes, filters); };
  }

  void beginCapture(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    cudaCheck(cudaStreamBeginCapture(stream_, mode));
  }
  GraphExec endCapture() { return test::endCapture(stream_); }
  void launch(const GraphExec& graph) {
    cudaCheck(cudaGraphLaunch(graph.get(), stream_));
    cudaCheck(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream_ = nullptr;
  OnDevice<Aabb> boxes_;
  OnDevice<Filter> filters_;
};

TEST_F(DeviceFinder, AgreesWithBruteForce) { test::agreesWithBruteForce({}, finding()); }

TEST_F(DeviceFinder, ReportsATruncatedListAndGrowsForTheNext) {
  DevicePairFinder finder;
  const Boxes boxes(300, test::boxAt(0, 0, 0, 1));
  const std::uint64_t all = 300 * 299 / 2;
  const Answer first = find(finder, boxes);
  EXPECT_EQ(first.count, all);
  EXPECT_LT(first.capacity, all);
  for (const Pair pair : first.pairs) EXPECT_LT(pair.first, pair.second);
  EXPECT_TRUE(std::is_sorted(first.pairs.begin(), first.pairs.end()));
  const Answer second = find(finder, boxes);
  EXPECT_GE(second.capacity, all);
  EXPECT_EQ(second.pairs, pairsOnHost(boxes));

  DeviceOptions options;
  options.initialPairCapacity = all;
  DevicePairFinder large(options);
  EXPECT_EQ(find(large, boxes).pairs, second.pairs) << "its initial capacity suffices";
}

TEST_F(DeviceFinder, StepsMayBeQueuedWithoutWaiting) {
  Random random(96);
  const Boxes boxes = test::boxSets()[0].make(700, random);
  const OnDevice<Aabb> device(boxes);
  DevicePairFinder finder;
  for (const std::size_t n : {300u, 700u, 500u})
    finder.find(DeviceScene::of({device.view().data(), n}), {}, stream_);
  const DeviceLists last = finder.find(DeviceScene::of({device.view().data(), 600}), {}, stream_);
  cudaCheck(cudaStreamSynchronize(stream_));
  EXPECT_EQ(pairsOf(last), pairsOnHost(Boxes(boxes.begin(), boxes.begin() + 600)));
}

TEST_F(DeviceFinder, RefusesTooManyBoxesAndPairs) { test::refusesWhatDoesNotFit({}); }

TEST_F(DeviceFinder, SearchStopsAtMaxPairs) { test::stopsAtItsLimit({}, finding()); }

TEST_F(DeviceFinder, CapturedSearchReadsTheBoxesOfEachLaunch) {
  Random random(97);
  DevicePairFinder finder;
  reserve(finder, 400, 6000);
  boxes_.assign(Boxes(400, test::boxAt(0, 0, 0, 1)));
  beginCapture();
  const DeviceLists found = finder.find(DeviceScene::of(boxes_.view()), {}, stream_);
  const GraphExec graph = endCapture();
  EXPECT_EQ(found.pairs.size(), 6000u);
  for (const test::BoxSet& set : test::boxSets()) {  // some of these sets need codes of 63 bits
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(400, random);
    boxes_.assign(boxes);
    launch(graph);
    const Pairs expected = pairsOnHost(boxes);
    EXPECT_EQ(countOf(found), expected.size());
    if (expected.size() <= found.pairs.size()) EXPECT_EQ(pairsOf(found), expected);
  }
}

TEST_F(DeviceFinder, EmptySearchKeepsNoOrder) {
  Random random(100);
  DevicePairFinder finder;
  find(finder, {});
  reserve(finder, 300, 0);
  const Boxes boxes = test::boxSets()[0].make(300, random);
  EXPECT_EQ(find(finder, boxes).pairs, pairsOnHost(boxes));
  const OnDevice<Aabb> there(boxes);
  find(finder, {});
  beginCapture();
  const DeviceLists found = finder.find(DeviceScene::of({there.view().data(), 200}), {}, stream_);
  launch(endCapture());
  EXPECT_EQ(pairsOf(found), pairsOnHost(Boxes(boxes.begin(), boxes.begin() + 200)));
}

TEST_F(DeviceFinder, CapturedSearchSurvivesLaterSearches) {
  Random random(98);
  DevicePairFinder finder;
  const Boxes boxes = test::boxSets()[0].make(300, random);
  const Pairs expected = pairsOnHost(boxes);
  reserve(finder, 300, 0);
  const OnDevice<Aabb> there(boxes);
  beginCapture(cudaStreamCaptureModeThreadLocal);
  const DeviceLists found = finder.find(DeviceScene::of(there.view()), {}, stream_);
  const GraphExec graph = endCapture();
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected);

  const Boxes many(700, test::boxAt(0, 0, 0, 1));
  find(finder, many);
  EXPECT_EQ(find(finder, many).pairs, pairsOnHost(many)) << "has grown";
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected) << "in the same place";
  reserve(finder, 800, 1 << 18);
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected);
  EXPECT_EQ(find(finder, boxes).pairs, expected);
}

TEST_F(DeviceFinder, CaptureContinuesAfterASearchWithoutMemory) {
  Random random(99);
  const Boxes boxes = test::boxSets()[0].make(200, random);
  const OnDevice<Aabb> there(boxes);
  DevicePairFinder finder;
  find(finder, test::boxSets()[0].make(500, random));
  beginCapture();
  EXPECT_THROW(finder.find(DeviceScene::of(there.view()), {}, stream_), std::length_error)
      << "nothing reserved";
  endCapture();
  reserve(finder, 200, 4000);
  beginCapture();
  boxes_.assign({});
  EXPECT_THROW(finder.find(DeviceScene::of({there.view().data(), 201}), {}, stream_),
               std::length_error);
  const DeviceLists found = finder.find(DeviceScene::of(there.view()), {}, stream_);
  launch(endCapture());
  EXPECT_EQ(pairsOf(found), pairsOnHost(boxes));
}

// A PairFinder would continue on the host. A DevicePairFinder cannot, so its constructor throws.
TEST_F(DeviceFinder, IsNotMadeForAGpuThatWasWrong) {
  DevicePairFinder before;
  gpuWasWrong = true;
  EXPECT_THROW(DevicePairFinder(), std::runtime_error);
  gpuWasWrong = false;
  DevicePairFinder after;
}

}  // namespace
}  // namespace lbvh
