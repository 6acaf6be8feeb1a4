// Boxes that stay on the device: the same pairs in the same order as the host finds.
// Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "broadphase/device_pair_finder.h"
#include "broadphase/exec/cuda/buffer.cuh"
#include "broadphase/pair_finder.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

class DeviceFinder : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = whyUnavailable(Backend::cuda);
    if (!why.empty()) GTEST_SKIP() << why;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  /// Asks on a stream, and looks at the lists only after the stream has come to its end.
  struct Answer {
    Pairs pairs;
    std::uint64_t count = 0;
    std::size_t capacity = 0;
  };

  Answer find(DevicePairFinder& finder, const Boxes& boxes,
              const std::vector<Filter>& filters = {}) {
    const View<const Aabb> there = upload(boxes, boxes_);
    const DevicePairs found = finder.find(there, upload(filters, filters_), stream_);
    cudaCheck(cudaStreamSynchronize(stream_));
    Answer answer;
    answer.capacity = found.capacity;
    cudaCheck(cudaMemcpy(&answer.count, found.count, sizeof answer.count, cudaMemcpyDeviceToHost));
    answer.pairs.resize(std::min<std::size_t>(answer.count, found.capacity));
    if (!answer.pairs.empty())
      cudaCheck(cudaMemcpy(answer.pairs.data(), found.data, answer.pairs.size() * sizeof(Pair),
                           cudaMemcpyDeviceToHost));
    return answer;
  }

  static Pairs onHost(const Boxes& boxes, const std::vector<Filter>& filters = {}) {
    Options options;
    options.backend = Backend::host;
    options.threads = 1;
    PairFinder host(options);
    host.update(view(boxes), view(filters));
    return toVector(host.pairs());
  }

 private:
  template <class T>
  static View<const T> upload(const std::vector<T>& host, DeviceBuffer<T>& buffer) {
    const View<T> device = buffer.ensure(host.size());
    if (!host.empty())
      cudaCheck(
          cudaMemcpy(device.data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
  }

  cudaStream_t stream_ = nullptr;
  DeviceBuffer<Aabb> boxes_;
  DeviceBuffer<Filter> filters_;
};

TEST_F(DeviceFinder, AgreesWithTheHost) {
  Random random(95);
  DevicePairFinder finder;
  for (const std::size_t n : {0u, 1u, 2u, 33u, 1025u, 3000u}) {
    SCOPED_TRACE(n);
    const Boxes boxes = test::boxSets()[0].make(n, random);
    find(finder, boxes);  // the capacity is still that of fewer boxes
    EXPECT_EQ(find(finder, boxes).pairs, onHost(boxes));
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(180, random);
    std::vector<Filter> filters(boxes.size());
    for (Filter& filter : filters) filter = {1 << random.below(3), static_cast<int>(random.bits())};
    find(finder, boxes, filters);
    EXPECT_EQ(find(finder, boxes, filters).pairs, onHost(boxes, filters));
  }
}

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
  EXPECT_EQ(second.pairs, onHost(boxes));

  DevicePairFinder large(all);
  EXPECT_EQ(find(large, boxes).pairs, second.pairs) << "has room at once";
}

TEST_F(DeviceFinder, StepsMayBeQueuedWithoutWaiting) {
  Random random(96);
  const Boxes boxes = test::boxSets()[0].make(700, random);
  DeviceBuffer<Aabb> device;
  cudaCheck(cudaMemcpy(device.ensure(700).data, boxes.data(), 700 * sizeof(Aabb),
                       cudaMemcpyHostToDevice));
  DevicePairFinder finder;
  cudaStream_t stream = nullptr;
  cudaCheck(cudaStreamCreate(&stream));
  for (const std::size_t n : {300u, 700u, 500u})
    finder.find(View<const Aabb>{device.data(), n}, {}, stream);
  const DevicePairs last = finder.find(View<const Aabb>{device.data(), 600}, {}, stream);
  cudaCheck(cudaStreamSynchronize(stream));
  const Pairs expected = onHost(Boxes(boxes.begin(), boxes.begin() + 600));
  Pairs pairs(expected.size());
  cudaCheck(
      cudaMemcpy(pairs.data(), last.data, pairs.size() * sizeof(Pair), cudaMemcpyDeviceToHost));
  EXPECT_EQ(pairs, expected);
  cudaStreamDestroy(stream);
}

TEST_F(DeviceFinder, RefusesWhatDoesNotFit) {
  DevicePairFinder finder;
  const View<const Aabb> tooMany{nullptr, (std::size_t{1} << 30) + 1};
  EXPECT_THROW(finder.find(tooMany, {}, nullptr), std::length_error);
  EXPECT_THROW(finder.find({nullptr, 3}, {nullptr, 2}, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace lbvh
