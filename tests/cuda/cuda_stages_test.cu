// SPDX-License-Identifier: Zlib
// Tests CudaSpace and its stages. Compares their results with the host's, element by element.
// Skipped if there is no device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "broadphase/cuda/step.cuh"
#include "broadphase/cuda/step.h"
#include "broadphase/host/order.h"
#include "broadphase/host/parallel/space.h"
#include "broadphase/host/step.h"
#include "cuda_fixture.h"
#include "device_boxes.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::download;
using test::Random;
using test::view;

class CudaStages : public test::OnCuda {};

template <class Key>
std::vector<Key> codesOnHost(const Boxes& boxes, const Grid& grid) {
  std::vector<Key> keys;
  const AssignCodes<Key> codes{view(boxes), &grid, nullptr, nullptr, nullptr};
  for (const Aabb& box : boxes) keys.push_back(codes.key(box));
  return keys;
}

struct Iota {
  std::uint32_t* ids;
  __device__ void operator()(std::uint32_t i) const { ids[i] = i; }
};

template <class Key>
void expectSameCodesAndOrder(const Boxes& boxes, const Grid& grid) {
  const std::size_t n = boxes.size();
  CudaSpace space;
  UploadBuffer<Aabb> upload;
  DeviceBuffer<Grid> deviceGrid;
  DeviceBuffer<Key> keys, spareKeys;
  DeviceBuffer<std::uint32_t> ids, spareIds;
  DeviceBuffer<std::uint32_t> arrivals;
  test::toDevice(deviceGrid.ensure(1).data(), &grid, 1);
  space.forEach(
      n, AssignCodes<Key>{space.upload(view(boxes), upload), deviceGrid.data(),
                          keys.ensure(n).data(), ids.ensure(n).data(), arrivals.ensure(n).data()});
  cudaCheck(cudaDeviceSynchronize());
  std::vector<Key> found(n), expected = codesOnHost<Key>(boxes, grid);
  cudaCheck(cudaMemcpy(found.data(), keys.data(), n * sizeof(Key), cudaMemcpyDeviceToHost));
  ASSERT_EQ(found, expected);

  space.sortInto(View<Key>{keys.data(), n}, View<std::uint32_t>{ids.data(), n}, spareKeys.ensure(n),
                 spareIds.ensure(n), 0, AssignCodes<Key>::kKeyBits);
  cudaCheck(cudaDeviceSynchronize());
  std::vector<std::uint32_t> order(n), expectedOrder(n), spareOrder(n);
  std::vector<Key> spare(n);
  cudaCheck(cudaMemcpy(order.data(), spareIds.data(), n * 4, cudaMemcpyDeviceToHost));
  for (std::uint32_t i = 0; i < n; ++i) expectedOrder[i] = i;
  HostSpace(1).sortByKey(View<Key>{expected.data(), n},
                         View<std::uint32_t>{expectedOrder.data(), n}, View<Key>{spare.data(), n},
                         View<std::uint32_t>{spareOrder.data(), n}, 0, AssignCodes<Key>::kKeyBits);
  EXPECT_EQ(order, expectedOrder);

  if constexpr (kCubMerges) {
    const View<Key> unsorted = spareKeys.ensure(n);
    test::toDevice(unsorted.data(), found.data(), n);
    space.forEach(n, Iota{ids.data()});
    space.mergeSort(unsorted, View<std::uint32_t>{ids.data(), n});
    space.wait();
    cudaCheck(cudaMemcpy(order.data(), ids.data(), n * 4, cudaMemcpyDeviceToHost));
    EXPECT_EQ(order, expectedOrder);
  }
}

template <class Key>
void expectTheHostsKeys(const Boxes& boxes, const Grid& grid) {
  const std::size_t n = boxes.size();
  HostTasks tasks(1);
  std::vector<Key> expected(n), found(n);
  std::vector<std::uint32_t> ids(n);
  CurveOrder(tasks, simdKernels()).assignKeys(view(boxes), grid, expected.data(), ids.data());
  for (std::size_t i = 0; i < n; ++i)
    found[i] = AssignHilbertCodes<Key>{view(boxes), &grid, nullptr, nullptr}.key(boxes[i]);
  EXPECT_EQ(found, expected);
}

TEST(Hilbert, KeysOfSingleBoxesEqualThoseOfSixteenAtOnce) {
  Random random(98);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(333, random);
    Grid grid;
    grid.perLength = 0.05f;
    expectTheHostsKeys<std::uint32_t>(boxes, grid);
    expectTheHostsKeys<std::uint64_t>(boxes, grid);
  }
}

bool isAround(const Corners& bounds, const Corners& box) {
  for (int axis = 0; axis < 3; ++axis)
    if (bounds.min[axis] > box.min[axis] || bounds.max[axis] < box.max[axis]) return false;
  return true;
}

// Each box is in its slot, and within the bounds of its block and group. Slots without a box,
// and slots of boxes with a NaN, are empty.
TEST_F(CudaStages, BlocksHoldAllBoxesInAnyOrder) {
  Random random(99);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(1500, random);
    std::vector<std::uint32_t> order(boxes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::reverse(order.begin() + 100, order.end());
    CudaSpace space;
    UploadBuffer<Aabb> upload;
    UploadBuffer<std::uint32_t> ids;
    DeviceBuffer<StepHeader> header;
    LeafBlockBuffers buffers{DeviceMemory{}};
    const LeafBlocks leaves = buffers.ensure(boxes.size());
    const View<const Aabb> there{space.upload(view(boxes), upload).data(), boxes.size()};
    space.fill(header.ensure(1), 0);
    space.launch<packBlocksKernel>(
        leaves.groupCount, PackBlocks::kGroup,
        PackBlocks{there, space.upload(view(order), ids).data(), leaves, header.data()});
    space.wait();

    const std::size_t groups = leaves.groupCount;
    const auto corners = [&](const CornerArrays& arrays, std::size_t count) {
      const auto low = download(View<const float4>{arrays.low, count});
      const auto high = download(View<const float4>{arrays.high, count});
      std::vector<Corners> all(count);
      for (std::size_t i = 0; i < count; ++i) {
        all[i] = {{low[i].x, low[i].y, low[i].z}, {high[i].x, high[i].y, high[i].z}, 0};
        std::memcpy(&all[i].id, &low[i].w, 4);
      }
      return all;
    };
    const auto slots = corners(leaves.boxes, 1024 * groups);
    const auto blocks = corners(leaves.blocks, 32 * groups);
    const auto bounds = corners(leaves.groups, groups);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Corners& slot = slots[i];
      const Aabb* box = i < order.size() ? &boxes[order[i]] : nullptr;
      if (box != nullptr && classify(*box) != BoxClass::nan) {
        EXPECT_EQ(slot.id, order[i]);
        EXPECT_EQ(std::memcmp(&slot, box, sizeof *box), 0);
        EXPECT_TRUE(isAround(blocks[i / 32], slot));
        EXPECT_TRUE(isAround(bounds[i / 1024], slot));
      } else {
        EXPECT_EQ(slot.id, kNullIndex);
        EXPECT_NE(slot.min[0], slot.min[0]) << "not a NaN";
      }
    }
  }
}

TEST_F(CudaStages, CodesAndOrderEqualTheHosts) {
  Random random(92);
  for (const std::size_t n : {1u, 2u, 3u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 12486u}) {
    SCOPED_TRACE(n);
    Grid grid;
    grid.perLength = 0.05f;
    expectSameCodesAndOrder<std::uint32_t>(test::boxSets()[0].make(n, random), grid);
    expectSameCodesAndOrder<std::uint64_t>(Boxes(n, test::boxAt(1, 2, 3, 1)), grid);
  }
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    const Boxes boxes = set.make(500, random);
    Grid grid;
    grid.perLength = 0.05f;
    expectSameCodesAndOrder<std::uint32_t>(boxes, grid);
    expectSameCodesAndOrder<std::uint64_t>(boxes, grid);
  }
}

TEST_F(CudaStages, LaunchesAreRecordedTheSecondTimeAndReplayedFromTheThird) {
  CudaSpace space;
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data();
  int calls = 0;
  const auto repeat = [&](int name, int times) {
    for (int i = 0; i < times; ++i) {
      report[0].pairs = static_cast<std::uint64_t>(name + i);
      const int result = space.replay(recordings, name, [&] {
        space.forEach(Report::kWords, Report{&report[0], &report[1]});
        return ++calls, name;
      });
      space.wait();
      EXPECT_EQ(result, name);
      EXPECT_EQ(report[1].pairs, report[0].pairs);
    }
  };
  repeat(100, 5);
  EXPECT_EQ(calls, 2);
  repeat(200, 5);
  EXPECT_EQ(calls, 4);
  repeat(100, 5);
  EXPECT_EQ(calls, 4) << "the first is still known";
  for (int name = 300; name < 470; name += 10) repeat(name, 1);
  repeat(100, 1);
  EXPECT_EQ(calls, 22) << "and now forgotten";
}

// Between otherwise equal steps, the host's memory moves once, and later the device's memory moves.
TEST_F(CudaStages, RecordingIsForgottenWhenMemoryMoves) {
  CudaSpace space;
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> reports(space.hostMemory());
  DeviceBuffer<StepHeader> header(space.memory());
  int calls = 0;
  std::uint64_t pairs = 0;
  const auto repeat = [&](int expectedCalls) {
    for (int i = 0; i < 4; ++i) {
      StepHeader* const report = reports.data();
      report[0].pairs = ++pairs;
      space.replay(recordings, 1, [&] {
        space.forEach(Report::kWords, Report{&report[0], header.data()});
        space.forEach(Report::kWords, Report{header.data(), &report[1]});
        return ++calls;
      });
      space.wait();
      EXPECT_EQ(report[1].pairs, pairs) << i;
    }
    EXPECT_EQ(calls, expectedCalls);
  };
  reports.ensure(2);
  header.ensure(1);
  repeat(2);
  reports.ensure(reports.capacity() + 1);
  repeat(4);
  header.ensure(header.capacity() + 1);
  repeat(6);
  repeat(6);
}

TEST_F(CudaStages, AnErrorInARecordingLeavesTheStreamUsable) {
  CudaSpace space;
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data();
  bool fails = false;
  const auto step = [&] {
    return space.replay(recordings, 1, [&] {
      space.forEach(Report::kWords, Report{&report[0], &report[1]});
      if (fails) cudaCheck(cudaErrorMemoryAllocation);
      return 1;
    });
  };
  step();
  fails = true;
  try {
    step();
    FAIL() << "no error";
  } catch (const SpaceError& error) {
    EXPECT_FALSE(error.isSticky) << error.what();
  }
  fails = false;
  for (report[0].pairs = 1; report[0].pairs < 4; ++report[0].pairs) {
    step();
    space.wait();
    EXPECT_EQ(report[1].pairs, report[0].pairs);
  }
}

TEST_F(CudaStages, RecordingDisturbsNoOtherThread) {
  CudaSpace space;
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data();
  int calls = 0;
  const auto synchronise = [] { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); };
  for (int step = 1; step < 6; ++step) {
    report[0].pairs = static_cast<std::uint64_t>(step);
    space.replay(recordings, 7, [&] {
      ++calls;
      space.forEach(Report::kWords, Report{&report[0], &report[1]});
      std::thread(synchronise).join();
      space.forEach(Report::kWords, Report{&report[0], &report[1]});
      return 0;
    });
    space.wait();
    EXPECT_EQ(report[1].pairs, report[0].pairs);
  }
  EXPECT_EQ(calls, 2) << "the second call was recorded";
}

// Launches and fills keep their order in a graph, and stages in it are timed.
TEST_F(CudaStages, RecordedFillsAndTimesAreRight) {
  CudaSpaceOptions options;
  options.timesStages = true;
  CudaSpace space(options);
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data();
  double ms = 0;
  for (int step = 1; step < 5; ++step) {
    report[0].pairs = static_cast<std::uint64_t>(step);
    ms = 0;
    space.replay(recordings, 7, [&] {
      const auto timer = space.timed("all", &ms);
      space.forEach(Report::kWords, Report{&report[0], &report[1]});
      space.fill(View<std::uint64_t>{&report[1].pairs, 1}, 0x11);
      space.forEach(1, Iota{reinterpret_cast<std::uint32_t*>(&report[1].pairs)});
      return 0;
    });
    space.wait();
    EXPECT_GT(ms, 0);
    EXPECT_EQ(report[1].pairs, 0x1111111100000000);
  }
}

TEST_F(CudaStages, StepThatWouldNeedMemoryRunsUnrecorded) {
  CudaSpace space;
  GraphRecordings<int, int> recordings;
  PinnedBuffer<StepHeader> pinned;
  StepHeader* report = pinned.ensure(2).data();
  DeviceBuffer<std::uint32_t> grows(space.memory());
  std::size_t size = 0;
  int calls = 0;
  for (int step = 1; step < 4; ++step) {
    report[0].pairs = static_cast<std::uint64_t>(step);
    space.replay(recordings, 7, [&] {
      ++calls;
      space.forEach(Report::kWords, Report{&report[0], &report[1]});
      if (step == 2) grows.ensure(size += 100000);
      return 0;
    });
    space.wait();
    EXPECT_EQ(report[1].pairs, report[0].pairs);
  }
  EXPECT_EQ(calls, 4) << "the second step ran twice: its recording needed memory";
}

// The test runs in its own process, because a sticky error makes the GPU unusable for the process.
TEST_F(CudaStages, KnowsWhetherAnErrorIsStickyWithoutWaitingForTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto failTwice = [] {
    CudaSpace space;
    if (space.isLost()) std::_Exit(1);
    space.forEach(Report::kWords, Report{nullptr, nullptr});
    try {
      space.wait();
    } catch (const SpaceError&) {
      std::_Exit(space.isLost() ? 0 : 2);
    }
    std::_Exit(3);
  };
  EXPECT_EXIT(failTwice(), testing::ExitedWithCode(0), "");
}

TEST_F(CudaStages, NothingIsRecordedIfGraphsAreOff) {
  CudaSpaceOptions options;
  options.graphs = false;
  CudaSpace space(options);
  GraphRecordings<int, int> recordings;
  int calls = 0;
  for (int i = 0; i < 4; ++i) space.replay(recordings, 7, [&] { return ++calls; });
  EXPECT_EQ(calls, 4);
}

TEST_F(CudaStages, MemoryIsFreedInStreamOrderOrAtTheEnd) {
  cudaStream_t stream = nullptr;
  cudaCheck(cudaStreamCreate(&stream));
  // Reads the pool's counter, because the device's free memory also depends on the memory that the
  // pool keeps and on other programs.
  cudaMemPool_t pool = nullptr;
  cudaCheck(cudaDeviceGetMemPool(&pool, 0));
  const auto used = [&] {
    cudaCheck(cudaStreamSynchronize(stream));
    std::uint64_t bytes = 0;
    cudaCheck(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
  };
  const auto isAllocated = [](const void* p) {
    cudaPointerAttributes found{};
    cudaCheck(cudaPointerGetAttributes(&found, p));
    return found.type != cudaMemoryTypeUnregistered;
  };
  constexpr std::size_t kMiB = 1 << 20;
  const std::uint64_t before = used();
  for (const bool hasPools : {true, false}) {
    const void *onDevice = nullptr, *onHost = nullptr;
    {
      CudaMemory memory(stream, hasPools);
      {
        DeviceBuffer<char> device(DeviceMemory{&memory});
        PinnedBuffer<char> pinned(PinnedMemory{&memory});
        for (std::size_t i = 1; i <= 16; ++i) {
          onDevice = device.ensure(i * kMiB).data();
          onHost = pinned.ensure(i * kMiB).data();
        }
        const std::size_t most = (hasPools ? 1 : 2) * device.bytes() + 2 * pinned.bytes();
        EXPECT_GE(memory.bytes(), device.bytes() + pinned.bytes());
        EXPECT_LE(memory.bytes(), most) << "memory that waits to be freed at most doubles it";
        EXPECT_GE(used(), before + (hasPools ? device.bytes() : 0));
        const CudaMemory::Ban ban(memory);
        EXPECT_THROW(device.ensure(100 * kMiB), std::length_error);
        EXPECT_GE(device.capacity(), 16 * kMiB) << "nothing has changed";
      }
      EXPECT_EQ(used(), before) << "pool memory is freed in stream order";
      if (!hasPools) EXPECT_TRUE(isAllocated(onDevice)) << "freed at the end";
      EXPECT_TRUE(isAllocated(onHost)) << "freed at the end";
      memory.requireMayGrow();
    }
    if (!hasPools) EXPECT_FALSE(isAllocated(onDevice));
    EXPECT_FALSE(isAllocated(onHost));
  }
  cudaStreamDestroy(stream);
}

// 300 coincident boxes have 44,850 pairs, which are added in the first step and removed in the
// third.
TEST_F(CudaStages, LongListsNeedLittlePageLockedMemory) {
  Random random(93);
  const Boxes crowd(300, test::boxAt(0, 0, 0, 1)), loose = test::boxSets()[0].make(300, random);
  const std::size_t pairs = 300 * 299 / 2, uploads = 2 * 24 * 512 + 4096;
  for (const std::size_t mappedMiB : {0, 1, 16}) {
    Options options;
    options.pinnedDeltaMiB = mappedMiB;
    CudaPipeline gpu(options);
    const auto host = makeHostPipeline(1, simdKernels());
    StepStats stats;
    std::size_t inFirst = 0;
    for (const Boxes* boxes : {&crowd, &crowd, &loose, &crowd, &crowd, &crowd, &crowd, &loose}) {
      gpu.step({view(*boxes), {}, {}, options.maxPairs}, stats);
      host->step({view(*boxes), {}, {}, options.maxPairs}, stats);
      EXPECT_EQ(test::toVector(gpu.added()), test::toVector(host->added()));
      EXPECT_EQ(test::toVector(gpu.removed()), test::toVector(host->removed()));
      EXPECT_EQ(test::toVector(gpu.pairs()), test::toVector(host->pairs()));
      if (inFirst == 0) inFirst = gpu.pinnedBytes();
      EXPECT_LE(gpu.pinnedBytes(), std::max<std::size_t>(32768, mappedMiB << 20) + uploads);
      EXPECT_LE(gpu.pinnedBytes(), gpu.memoryBytes());
    }
    EXPECT_LT(inFirst, 12 * pairs);
    EXPECT_EQ(inFirst > 8 * pairs, mappedMiB == 16) << "pairs() copies to it if they fit";
  }
}

TEST_F(CudaStages, ListsGrowWithChangesExceptInTheFirstStep) {
  StepPlan plan;
  plan.mostPairs = 1 << 20;
  plan.mostListed = StepPlan::listedIn(4 << 20);
  StepHeader step;
  step.pairs = step.delta.added = 60000;
  plan.adaptTo(step);
  EXPECT_FALSE(plan.lists(step.delta)) << "all of them are new";
  step.arguments.oldPairs = 60000;
  plan.adaptTo(step);
  EXPECT_TRUE(plan.lists(step.delta));
  step.delta.removed = 1 << 20;
  plan.adaptTo(step);
  EXPECT_EQ(plan.listed, plan.mostListed);
  EXPECT_LE(5 * plan.listed * sizeof(Pair), 4u << 20);
}

// Tests only the checks of counts, because no test can have more pairs than 32 bits can count.
TEST_F(CudaStages, TooLargeCountsAreRefused) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  constexpr std::size_t k2To32 = std::size_t{1} << 32;
  CudaSpace space;
  StepHeader* nowhere = nullptr;
  EXPECT_THROW(space.forEach(k2To32, Report{nowhere, nowhere}), std::length_error);
  EXPECT_THROW(space.forEach(k2To32 + 1, Report{nowhere, nowhere}), std::length_error);
  const View<std::uint32_t> tooMany{nullptr, k2To32};
  EXPECT_THROW(space.sortInto(tooMany, tooMany, tooMany, tooMany, 0, 32), std::length_error);

  StepPlan plan;
  plan.mostPairs = CudaSpace::kMaxElements;
  plan.begin(std::size_t{1} << 30, std::size_t{1} << 30, 0);
  EXPECT_EQ(plan.pairs, CudaSpace::kMaxElements) << "eight pairs per box are too many";
  StepHeader step;
  step.pairs = CudaSpace::kMaxElements;
  plan.adaptTo(step);
  EXPECT_TRUE(plan.covers(step));
  EXPECT_EQ(plan.pairs, CudaSpace::kMaxElements);
  step.pairs = kAll / 4;
  plan.adaptTo(step);
  EXPECT_EQ(plan.pairs, CudaSpace::kMaxElements);
  EXPECT_FALSE(plan.covers(step));

  StepPlan small;
  small.mostPairs = 5000;
  step.pairs = 4999;
  small.adaptTo(step);
  EXPECT_EQ(small.pairs, 5000u) << "no more than may be found";
}

}  // namespace
}  // namespace lbvh
