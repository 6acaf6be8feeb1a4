// SPDX-License-Identifier: Zlib
// Tests what a step sends to the GPU. After an upload the device must have the caller's arrays,
// with and without change bits. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "broadphase/cuda/runtime/space.cuh"
#include "broadphase/cuda/step.h"
#include "broadphase/host/parallel/tasks.h"
#include "broadphase/host/step.h"
#include "cuda_fixture.h"
#include "device_boxes.cuh"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

using Bits = std::vector<std::uint64_t>;

void mark(Bits& bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << i % 64; }

/// Random elements of any type.
template <class T>
T randomElement(Random& random) {
  std::uint32_t words[(sizeof(T) + 3) / 4];
  for (std::uint32_t& word : words) word = random.bits();
  T element;
  std::memcpy(&element, words, sizeof element);
  return element;
}

template <class T>
bool areEqual(const T* a, const T* b, std::size_t n) {
  return n == 0 || std::memcmp(a, b, n * sizeof(T)) == 0;
}

/// An array and its copy on the device, which must be equal after each upload.
template <class T>
class Uploaded {
 public:
  /// Marks new elements only at indices that the array also had at the last upload.
  void resize(std::size_t n, Random& random) {
    const std::size_t before = host_.size();
    host_.resize(n);
    changed_.resize(n / 64 + 1);
    for (std::size_t i = before; i < n; ++i) {
      host_[i] = randomElement<T>(random);
      if (i < last_) mark(changed_, i);
    }
  }

  void change(std::size_t i, Random& random) {
    host_[i] = randomElement<T>(random);
    mark(changed_, i);
  }

  template <class Tasks>
  void upload(bool tells, Tasks& tasks) {
    SparseBits sent;
    sent.begin(host_.size());
    const View<const T> there = space_.upload(
        view(host_), buffer_, tells ? view(changed_) : View<const std::uint64_t>{}, &sent, tasks);
    expectOnDevice(there);
    expectAllSent(sent);
    before_ = host_;
    changed_.assign(changed_.size(), 0);
    last_ = host_.size();
  }

  void invalidate() { buffer_.invalidate(); }
  std::size_t size() const { return host_.size(); }

 private:
  /// Checks that all elements that differ from the last upload have been sent.
  void expectAllSent(const SparseBits& sent) const {
    std::vector<bool> isSent(host_.size());
    sent.forEach([&](std::uint32_t i) { isSent[i] = true; });
    for (std::size_t i = 0; i < host_.size(); ++i)
      if (i >= before_.size() || differ(before_[i], host_[i])) ASSERT_TRUE(isSent[i]) << i;
  }
  void expectOnDevice(View<const T> there) {
    ASSERT_GE(there.size(), host_.size());
    std::vector<T> copy(there.size()), padding(there.size() - host_.size());
    space_.copy(there, copy.data());
    ASSERT_TRUE(areEqual(copy.data(), host_.data(), host_.size()));
    if (padding.empty()) return;
    std::memset(padding.data(), sizeof(T) == sizeof(Aabb) ? 0xFF : 0, padding.size() * sizeof(T));
    ASSERT_TRUE(areEqual(copy.data() + host_.size(), padding.data(), padding.size()));
  }

  CudaSpace space_;
  UploadBuffer<T> buffer_{space_.memory(), space_.hostMemory()};
  std::vector<T> host_;
  std::vector<T> before_;  ///< elements of the last upload
  Bits changed_;
  std::size_t last_ = 0;  ///< number of elements of the last upload
};

class CudaUpload : public test::OnCuda {};

template <class T>
void followChanges(std::uint32_t seed) {
  Random random(seed);
  Uploaded<T> array;
  HostTasks tasks(3);
  CallingThread alone;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 700, 4096, 4097, 23000};
    if (random.below(4) == 0) array.resize(kSizes[random.below(9)], random);
    if (random.below(8) == 0) array.resize(array.size() + random.below(70), random);
    const std::size_t n = array.size();
    const std::uint32_t oneIn = 1u << random.below(8);
    const bool isClump = random.below(3) == 0;
    for (std::size_t i = 0; i < n; ++i)
      if (isClump ? i % 16384 < 16384 / oneIn : random.below(oneIn) == 0) array.change(i, random);
    if (random.below(20) == 0) array.invalidate();
    const bool tells = random.below(2) == 0;
    if (random.below(2) == 0)
      ASSERT_NO_FATAL_FAILURE(array.upload(tells, tasks));
    else
      ASSERT_NO_FATAL_FAILURE(array.upload(tells, alone));
  }
}

TEST_F(CudaUpload, BoxesFollowEveryChange) { followChanges<Aabb>(301); }
TEST_F(CudaUpload, FiltersFollowEveryChange) { followChanges<Filter>(302); }
TEST_F(CudaUpload, FlagsFollowEveryChange) { followChanges<std::uint8_t>(303); }

// The test breaks the caller's promise, to show that elements without a change bit are not read.
TEST_F(CudaUpload, BoxesWithoutChangeBitsAreNotRead) {
  CudaSpace space;
  UploadBuffer<Aabb> buffer(space.memory(), space.hostMemory());
  const Boxes before(300, test::boxAt(1, 2, 3, 1)), now(310, test::boxAt(4, 5, 6, 1));
  space.upload(view(before), buffer);
  Bits changed(5);
  mark(changed, 70);
  const View<const Aabb> there = space.upload(view(now), buffer, view(changed));
  Boxes found(now.size());
  space.copy(View<const Aabb>{there.data(), now.size()}, found.data());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Aabb& expected = i == 70 || i >= before.size() ? now[i] : before[i];
    EXPECT_TRUE(areEqual(&found[i], &expected, 1)) << i;
  }
}

/// Uploads on the default stream. @return the number of records that were sent
std::size_t uploadCounted(UploadBuffer<Aabb>& buffer, const Boxes& boxes) {
  std::size_t records = 0;
  const auto forEach = [&](std::size_t n, const auto& body) {
    records = n;
    const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
    if (n > 0) forEachKernel<<<blocks, kThreads>>>(body, static_cast<std::uint32_t>(n));
  };
  CallingThread alone;
  const View<const Aabb> there = buffer.upload(view(boxes), {}, nullptr, alone, nullptr, forEach);
  Boxes found(boxes.size());
  const std::size_t bytes = found.size() * sizeof(Aabb);
  EXPECT_EQ(cudaMemcpy(found.data(), there.data(), bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(areEqual(found.data(), boxes.data(), boxes.size()));
  return records;
}

// 438 is the maximum number of records (28 bytes each) in a quarter of a piece (2,048 boxes of 24
// bytes).
TEST_F(CudaUpload, FewChangesAreSentAsRecordsAndManyAsPieces) {
  UploadBuffer<Aabb> buffer;
  Boxes boxes(20000, test::boxAt(1, 2, 3, 1));
  const auto change = [&](std::size_t from, std::size_t n) {
    for (std::size_t i = from; i < from + n; ++i) boxes[i].min[i % 3] += 1;
  };
  EXPECT_EQ(uploadCounted(buffer, boxes), 0u);
  change(4090, 20);
  EXPECT_EQ(uploadCounted(buffer, boxes), 20u);
  change(100, 438);
  EXPECT_EQ(uploadCounted(buffer, boxes), 438u);
  change(100, 439);
  change(19000, 7);
  EXPECT_EQ(uploadCounted(buffer, boxes), 7u);
  EXPECT_EQ(uploadCounted(buffer, boxes), 0u);
}

/// A pipeline on the GPU and one on the host. A change bit is set if the box may differ from the
/// box of the last step that did not throw.
class Followed {
 public:
  Followed() : gpu_(makeCudaPipeline({})), host_(makeHostPipeline(1, simdKernels())) {}

  void changeSome() {
    constexpr std::size_t kSizes[] = {0, 3, 100, 300, 330, 600};
    if (random_.below(5) == 0) resize(kSizes[random_.below(6)]);
    const std::size_t n = boxes_.size();
    if (n == 0) return;
    const Boxes other = test::boxSets()[0].make(n, random_);
    const std::uint32_t oneIn = 1u << random_.below(7);
    for (std::size_t i = 0; i < n; ++i) {
      if (random_.below(oneIn) == 0) boxes_[i] = other[i], mark(changed_, i);
      if (random_.below(oneIn) == 0) filters_[i] = randomFilter(), mark(changed_, i);
    }
  }

  void step() {
    const bool tells = random_.below(3) != 0;
    StepInput input = inputNow();
    if (tells) input.changed = view(changed_);
    StepStats stats;
    gpu_->step(input, stats);
    host_->step(inputNow(), stats);
    endStep();
    ASSERT_EQ(toVector(gpu_->pairs()), toVector(host_->pairs()));
    ASSERT_EQ(toVector(gpu_->added()), toVector(host_->added()));
    ASSERT_EQ(toVector(gpu_->removed()), toVector(host_->removed()));
  }

  /// Makes a step that sends its boxes and then fails.
  void stepThatFails() {
    StepInput input = inputNow();
    input.changed = view(changed_);
    input.maxPairs = 0;
    StepStats stats;
    try {
      gpu_->step(input, stats);
      host_->step(input, stats);  // reached only if there are no pairs
      endStep();
    } catch (const std::length_error&) {
      ++failures;
    }
  }

  /// Makes a step on the host, and passes only its pairs to the GPU.
  void stepElsewhere() {
    StepStats stats;
    host_->step(inputNow(), stats);
    gpu_->setPreviousPairs(host_->pairs());
    endStep();
  }

  void filterOrNot() { isFiltered_ = !isFiltered_; }
  std::uint32_t below(std::uint32_t n) { return random_.below(n); }

  int failures = 0;

 private:
  /// Marks new boxes only at indices that also existed in the last step.
  void resize(std::size_t n) {
    const Boxes more = test::boxSets()[0].make(n, random_);
    changed_.resize(n / 64 + 1);
    const std::size_t before = boxes_.size();
    boxes_.resize(n);
    filters_.resize(n);
    for (std::size_t i = before; i < n; ++i) {
      boxes_[i] = more[i];
      filters_[i] = randomFilter();
      if (i < ofLastStep_) mark(changed_, i);
    }
  }
  void endStep() {
    changed_.assign(changed_.size(), 0);
    ofLastStep_ = boxes_.size();
  }
  Filter randomFilter() { return {1 << random_.below(3), static_cast<int>(random_.bits())}; }
  StepInput inputNow() const {
    return {view(boxes_), isFiltered_ ? view(filters_) : View<const Filter>{}, {}, 1u << 20};
  }

  Random random_{304};
  std::unique_ptr<Pipeline> gpu_, host_;
  Boxes boxes_;
  std::vector<Filter> filters_;
  Bits changed_ = Bits(1);
  std::size_t ofLastStep_ = 0;
  bool isFiltered_ = true;
};

TEST_F(CudaUpload, StepsFollowChangesThatTheGpuHasNotSeen) {
  Followed followed;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    followed.changeSome();
    const std::uint32_t event = followed.below(16);
    if (event == 0) followed.stepThatFails();
    if (event == 1) followed.stepElsewhere();
    if (event == 3) followed.filterOrNot();
    if (event < 2) followed.changeSome();
    ASSERT_NO_FATAL_FAILURE(followed.step());
  }
  EXPECT_GT(followed.failures, 3);
}

// A box of a replaced object needs no change bit, neither in the step of the replacement nor in the
// next one.
TEST_F(CudaUpload, RemovedObjectsNeedNoChangeBits) {
  const auto gpu = makeCudaPipeline({}), host = makeHostPipeline(1, simdKernels());
  const Boxes boxes(20, test::boxAt(0, 0, 0, 1));
  const Bits none(1);
  std::vector<std::uint8_t> flags(boxes.size());
  for (const std::size_t removed : {3, 7, 7, 19, 0}) {
    StepStats stats;
    gpu->step({view(boxes), {}, view(flags), 1u << 20, view(none)}, stats);
    host->step({view(boxes), {}, view(flags), 1u << 20}, stats);
    EXPECT_EQ(toVector(gpu->added()), toVector(host->added()));
    EXPECT_EQ(toVector(gpu->removed()), toVector(host->removed()));
    flags.assign(flags.size(), 0);
    flags[removed] = 1;
  }
}

}  // namespace
}  // namespace lbvh
