// SPDX-License-Identifier: Zlib
// Boxes that stay on the device: the same pairs in the same order as the host finds, on a stream
// that runs and on one that is captured. Skipped where there is no device.
#include "broadphase/device_pair_finder.h"

#include <gtest/gtest.h>

#include <algorithm>

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

  /// Asks on a stream, and looks at the lists only after the stream has come to its end.
  Answer find(DevicePairFinder& finder, const Boxes& boxes,
              const std::vector<Filter>& filters = {}) {
    boxes_.assign(boxes);
    filters_.assign(filters);
    const DevicePairs found = finder.find(boxes_.view(), filters_.view(), stream_);
    cudaCheck(cudaStreamSynchronize(stream_));
    return {pairsOf(found), countOf(found), found.capacity};
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

TEST_F(DeviceFinder, ReportsAnIncompleteListAndGrowsForTheNext) {
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

  DevicePairFinder large(all);
  EXPECT_EQ(find(large, boxes).pairs, second.pairs) << "has room at once";
}

TEST_F(DeviceFinder, StepsMayBeQueuedWithoutWaiting) {
  Random random(96);
  const Boxes boxes = test::boxSets()[0].make(700, random);
  const OnDevice<Aabb> device(boxes);
  DevicePairFinder finder;
  for (const std::size_t n : {300u, 700u, 500u})
    finder.find(View<const Aabb>{device.view().data, n}, {}, stream_);
  const DevicePairs last = finder.find(View<const Aabb>{device.view().data, 600}, {}, stream_);
  cudaCheck(cudaStreamSynchronize(stream_));
  EXPECT_EQ(pairsOf(last), pairsOnHost(Boxes(boxes.begin(), boxes.begin() + 600)));
}

TEST_F(DeviceFinder, RefusesWhatDoesNotFit) { test::refusesWhatDoesNotFit({}); }

TEST_F(DeviceFinder, ASearchStopsAtItsLimit) { test::stopsAtItsLimit({}, finding()); }

TEST_F(DeviceFinder, ACapturedSearchReadsTheBoxesOfEachLaunch) {
  Random random(97);
  DevicePairFinder finder;
  finder.reserve(400, 6000);
  boxes_.assign(Boxes(400, test::boxAt(0, 0, 0, 1)));
  beginCapture();
  const DevicePairs found = finder.find(boxes_.view(), {}, stream_);
  const GraphExec graph = endCapture();
  EXPECT_EQ(found.capacity, 6000u);
  for (const test::BoxSet& set : test::boxSets()) {  // some of them want codes of 63 bits
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(400, random);
    boxes_.assign(boxes);
    launch(graph);
    const Pairs expected = pairsOnHost(boxes);
    EXPECT_EQ(countOf(found), expected.size());
    if (expected.size() <= found.capacity) EXPECT_EQ(pairsOf(found), expected);
  }
}

TEST_F(DeviceFinder, ASearchForNothingIsNoOrderToKeep) {
  Random random(100);
  DevicePairFinder finder;
  find(finder, {});
  finder.reserve(300, 0);
  const Boxes boxes = test::boxSets()[0].make(300, random);
  EXPECT_EQ(find(finder, boxes).pairs, pairsOnHost(boxes));
  const OnDevice<Aabb> there(boxes);
  find(finder, {});
  beginCapture();
  const DevicePairs found = finder.find({there.view().data, 200}, {}, stream_);
  launch(endCapture());
  EXPECT_EQ(pairsOf(found), pairsOnHost(Boxes(boxes.begin(), boxes.begin() + 200)));
}

TEST_F(DeviceFinder, ACapturedSearchSurvivesWhatTheFinderDoesBesides) {
  Random random(98);
  DevicePairFinder finder;
  const Boxes boxes = test::boxSets()[0].make(300, random);
  const Pairs expected = pairsOnHost(boxes);
  finder.reserve(300, 0);
  const OnDevice<Aabb> there(boxes);
  beginCapture(cudaStreamCaptureModeThreadLocal);
  const DevicePairs found = finder.find(there.view(), {}, stream_);
  const GraphExec graph = endCapture();
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected);

  const Boxes many(700, test::boxAt(0, 0, 0, 1));
  find(finder, many);
  EXPECT_EQ(find(finder, many).pairs, pairsOnHost(many)) << "has grown";
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected) << "where it was";
  finder.reserve(800, 1 << 18);
  launch(graph);
  EXPECT_EQ(pairsOf(found), expected);
  EXPECT_EQ(find(finder, boxes).pairs, expected);
}

TEST_F(DeviceFinder, ACaptureGoesOnAfterASearchWithoutRoom) {
  Random random(99);
  const Boxes boxes = test::boxSets()[0].make(200, random);
  const OnDevice<Aabb> there(boxes);
  DevicePairFinder finder;
  find(finder, test::boxSets()[0].make(500, random));
  beginCapture();
  EXPECT_THROW(finder.find(there.view(), {}, stream_), std::length_error) << "nothing reserved";
  endCapture();
  finder.reserve(200, 4000);
  beginCapture();
  boxes_.assign({});
  EXPECT_THROW(finder.find({there.view().data, 201}, {}, stream_), std::length_error);
  const DevicePairs found = finder.find(there.view(), {}, stream_);
  launch(endCapture());
  EXPECT_EQ(pairsOf(found), pairsOnHost(boxes));
}

}  // namespace
}  // namespace lbvh
