// SPDX-License-Identifier: Zlib
// Tests comparisons of previous and current lists of pairs on the GPU, with lists of all kinds.
// Also tests the chained sums over tiles. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "broadphase/cuda/step.cuh"
#include "broadphase/cuda/step.h"
#include "broadphase/host/step.h"
#include "cuda_fixture.h"
#include "device_boxes.cuh"
#include "device_lists.cuh"

namespace lbvh {
namespace {

using test::Boxes;
using test::Comparison;
using test::download;
using test::everyOther;
using test::Lists;
using test::OnDevice;
using test::Pairs;
using test::Random;
using test::view;
using test::writable;

class CudaLists : public test::OnCuda {};

/// A pipeline on the GPU and one on the host, with the same input.
class Both {
 public:
  explicit Both(const Options& options = {})
      : gpu_(options), host_(makeHostPipeline(1, simdKernels())) {}

  void step(const Boxes& boxes, const std::vector<std::uint8_t>& removedObjects = {},
            View<const std::uint64_t> changed = {}) {
    StepStats stats;
    gpu_.step({view(boxes), {}, view(removedObjects), 1u << 24, changed}, stats);
    host_->step({view(boxes), {}, view(removedObjects), 1u << 24}, stats);
    expectTheSame();
  }

  /// Sets the previous pairs, as if another pipeline had run the previous step.
  void setPreviousPairs(const Pairs& pairs) {
    gpu_.setPreviousPairs(view(pairs));
    host_->setPreviousPairs(view(pairs));
  }

  std::size_t removed() const { return gpu_.removed().size(); }

 private:
  void expectTheSame() {
    ASSERT_EQ(test::toVector(gpu_.added()), test::toVector(host_->added()));
    ASSERT_EQ(test::toVector(gpu_.removed()), test::toVector(host_->removed()));
    ASSERT_EQ(test::toVector(gpu_.pairs()), test::toVector(host_->pairs()));
  }

  CudaPipeline gpu_;
  std::unique_ptr<Pipeline> host_;
};

Boxes apart(std::size_t n) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i)
    boxes.push_back(test::boxAt(3 * static_cast<float>(i), 0, 0, 1));
  return boxes;
}

Pairs listOf(std::uint32_t first, std::uint32_t begin, std::uint32_t end) {
  Pairs pairs;
  for (std::uint32_t second = begin; second < end; ++second) pairs.push_back({first, second});
  return pairs;
}

// Previous pairs of another pipeline may have indices of boxes that do not exist in this step.
TEST_F(CudaLists, PreviousPairsMayNameBoxesBeyondTheLast) {
  for (const std::uint32_t end : {200u, 300u, 5000u, 140000u}) {
    SCOPED_TRACE(end);
    Both both;
    both.setPreviousPairs(listOf(0, 1, end));
    both.step(apart(10));
    EXPECT_EQ(both.removed(), end - 1);
  }
}

// Recorded graphs hold the addresses of all buffers. Here each buffer grows in a different step.
TEST_F(CudaLists, NoRecordingOutlivesItsMemory) {
  Both both;
  const Boxes few = apart(250), some = apart(8192), more = apart(8700);
  for (const Boxes* boxes : {&few, &some, &some, &some, &some, &some, &more, &some, &some, &some})
    ASSERT_NO_FATAL_FAILURE(both.step(*boxes));
}

// A round holds up to 1,024 pairs, and up to 256 pairs of a list. The new lists, the old lists, or
// both reach these limits or exceed them, some by one pair.
TEST_F(CudaLists, TilesMayNeedOneRoundOrSeveralOrHaveHubs) {
  Random random(601);
  struct Shape {
    const char* name;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lists;  ///< box, list length
  };
  const Shape shapes[] = {
      {"none", {}},
      {"one round", {{0, 256}, {1, 256}, {40, 256}, {63, 256}}},
      {"one pair too many", {{0, 256}, {1, 256}, {40, 256}, {62, 256}, {63, 1}}},
      {"hub alone", {{20, 257}}},
      {"hub first", {{0, 300}, {1, 5}, {63, 9}}},
      {"hub last", {{0, 17}, {62, 33}, {63, 300}}},
      {"consecutive hubs", {{10, 300}, {11, 257}, {12, 256}, {13, 700}, {70, 257}}},
      {"rounds between hubs",
       {{0, 200},
        {5, 256},
        {6, 256},
        {7, 256},
        {8, 256},
        {9, 1025},
        {10, 250},
        {30, 250},
        {31, 250},
        {32, 250},
        {50, 250},
        {60, 4097}}},
      {"hubs at the borders of tiles",
       {{62, 300},
        {63, 257},
        {64, 257},
        {127, 400},
        {128, 257},
        {192, 999},
        {255, 257},
        {257, 300}}},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.name);
    Lists many(10000), few = Comparison::randomLists(130, 3, random);
    few.resize(10000);
    for (const auto& [box, size] : shape.lists) many[box] = everyOther(box + 1, size);
    Lists others = many;
    for (const auto& [box, size] : shape.lists) others[box] = everyOther(box + 2, size, 2);
    Lists changed = Comparison::changed(many, 10, random);
    for (const auto& [fresh, old] : {std::pair{&many, &few},
                                     {&few, &many},
                                     {&many, &many},
                                     {&many, &others},
                                     {&changed, &many}})
      ASSERT_NO_FATAL_FAILURE((Comparison{*fresh, *old, {}}.check(random)));
  }
}

// Only HubList::kMaxHubs hubs get tiles of their own. Here there are that many hubs, one more, and
// three times as many.
TEST_F(CudaLists, ManyHubsNeedNoTilesOfTheirOwn) {
  Random random(608);
  for (const std::uint32_t hubs :
       {HubList::kMaxHubs, HubList::kMaxHubs + 1, 3 * HubList::kMaxHubs}) {
    Lists many(2000), none(2000);
    for (std::uint32_t k = 0; k < hubs; ++k) {
      const std::uint32_t box = k % 2 == 0 ? k : 31 * k;
      many[box] = everyOther(box + 1, 257 + k);
    }
    for (const auto& [fresh, old] : {std::pair{&many, &none}, {&none, &many}, {&many, &many}})
      ASSERT_NO_FATAL_FAILURE((Comparison{*fresh, *old, {}}.check(random)));
  }
}

// Pairs lie at the ends of windows (65,536 boxes) and of regions (128 windows). Some windows have
// many pairs, others have none. New pairs are unsorted. Indices go up to the maximum.
TEST_F(CudaLists, HubsMaySpanManyWindows) {
  Random random(607);
  constexpr std::uint32_t kWindow = 65536, kRegion = 128 * kWindow, kBoxes = 1u << 30;
  std::vector<std::uint32_t> partners;
  for (const std::uint32_t border : {kWindow, 3 * kWindow, 70 * kWindow, kRegion - kWindow, kRegion,
                                     3 * kRegion, kBoxes - kRegion, kBoxes})
    for (const std::uint32_t k : {1u, 2u, 4096u}) {
      partners.push_back(border - k);
      if (border + k <= kBoxes) partners.push_back(border + k - 1);
    }
  for (std::uint32_t k = 0; k < 1500; ++k) partners.push_back(5 * kWindow + 17 * k);
  for (std::uint32_t k = 0; k < 1000; ++k) partners.push_back(100 + random.below(20 * kWindow));
  Comparison::tidy(partners);
  Lists many(64), others(64), none(64);
  many[3] = many[40] = partners;
  many[7] = everyOther(8, 300);
  for (std::size_t k = 0; k < partners.size(); ++k)
    if (k % 3 != 0) others[3].push_back(partners[k] + (k % 7 == 0 && partners[k] + 1 < kBoxes));
  Comparison::tidy(others[3]);
  for (const auto& [fresh, old] : {std::pair{&many, &none},
                                   {&none, &many},
                                   {&many, &many},
                                   {&many, &others},
                                   {&others, &many}})
    ASSERT_NO_FATAL_FAILURE((Comparison{*fresh, *old, {}, kBoxes - 64}.check(random)));
  std::vector<std::uint8_t> some(6 * kWindow);
  for (std::size_t box = 64; box < some.size(); box += 3) some[box] = 1;
  ASSERT_NO_FATAL_FAILURE((Comparison{others, many, some, kBoxes - 64}.check(random)));
}

// Lists have all lengths around the number of pairs that registers hold. Whole lists appear and
// disappear. Removed objects are the first or second boxes of pairs, or hubs.
TEST_F(CudaLists, ListsOfAllLengthsMayAppearAndVanish) {
  Random random(602);
  for (const std::uint32_t most : {1u, 8u, 20u, 40u}) {
    Lists old = Comparison::randomLists(400, most, random);
    old[100] = everyOther(101, 299);
    Lists fresh = Comparison::changed(old, 5, random);
    for (int k = 0; k < 60; ++k) {
      fresh[random.below(400)].clear();
      old[random.below(400)].clear();
    }
    std::vector<std::uint8_t> removed(350);
    for (int k = 0; k < 30; ++k) removed[random.below(350)] = 1;
    ASSERT_NO_FATAL_FAILURE((Comparison{fresh, old, {}}.check(random)));
    ASSERT_NO_FATAL_FAILURE((Comparison{fresh, old, removed}.check(random)));
    removed[100] = 1;
    ASSERT_NO_FATAL_FAILURE((Comparison{fresh, old, removed}.check(random)));
    ASSERT_NO_FATAL_FAILURE(
        (Comparison{old, old, std::vector<std::uint8_t>(400, 1)}.check(random)));
  }
}

// The number of boxes grows and shrinks at the borders of tiles.
TEST_F(CudaLists, NumbersOfBoxesMayDiffer) {
  Random random(603);
  const auto lists = [&](std::size_t n) { return Comparison::randomLists(n, 4, random); };
  for (const auto& [fresh, old] : {std::pair{0, 0},
                                   {0, 1},
                                   {1, 0},
                                   {2, 64},
                                   {64, 2},
                                   {65, 64},
                                   {64, 65},
                                   {63, 300},
                                   {300, 63},
                                   {0, 300},
                                   {300, 0}})
    ASSERT_NO_FATAL_FAILURE((Comparison{
        lists(static_cast<std::size_t>(fresh)),
        lists(static_cast<std::size_t>(old)),
        {}}.check(random)));
}

// The comparison and the prefix sum have about 100 tiles each. A block looks back at 32 tiles at a
// time, so it looks back more than twice.
TEST_F(CudaLists, SumsOverManyTilesAreExact) {
  Random random(604);
  const Lists old = Comparison::randomLists(6400, 3, random);
  ASSERT_NO_FATAL_FAILURE((Comparison{Comparison::changed(old, 4, random), old, {}}.check(random)));

  for (const std::uint32_t n : {1u, 1023u, 1024u, 1025u, 102500u}) {
    std::vector<std::uint32_t> counts(n), sums(n);
    for (std::uint32_t& count : counts) count = random.below(5);
    counts[n / 2] = HubList::kFrom;
    counts[n - 1] = HubList::kFrom + n % 2;
    std::exclusive_scan(counts.begin(), counts.end(), sums.begin(), 0u);
    const OnDevice<std::uint32_t> there(counts);
    const std::size_t tiles = SumCounts::tiles(n);
    const OnDevice<unsigned long long> words(std::vector<unsigned long long>(1 + tiles));
    const OnDevice<unsigned long long> hubs(std::vector<unsigned long long>(HubList::kWords));
    CudaSpace space;
    space.launch<sumCountsKernel>(
        tiles, kThreads,
        SumCounts{{writable(there), n}, {writable(words), writable(words) + 1}, {writable(hubs)}});
    space.wait();
    EXPECT_EQ(download(there.view()), sums) << n;
    auto found = download(hubs.view());
    found.resize(1 + found[0]);
    std::sort(found.begin() + 1, found.end());
    EXPECT_EQ(found, n == 1 ? (std::vector<unsigned long long>{1, 0})
                            : (std::vector<unsigned long long>{2, n / 2, n - 1}));
  }
}

struct LookBack {
  TileChain chain;
  std::uint32_t tile;
  unsigned long long own;
  unsigned long long* before;
};

static __global__ void lookBackKernel(LookBack in) {
  *in.before = sumOfTilesBefore(in.chain, in.tile, in.own);
}

// One earlier tile has published its inclusive sum, and the others have published their own sums.
// That inclusive sum holds both counts of a DeltaSum, and `added` is close to 2^31.
TEST_F(CudaLists, LookBackStopsAtTheNearestInclusiveSum) {
  for (const std::uint32_t tile : {0u, 1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 100u})
    for (const std::uint32_t known : {0u, 1u, 30u, 31u, 32u, 33u, 64u, 99u}) {
      if (known >= std::max(tile, 1u)) continue;
      SCOPED_TRACE(testing::Message() << tile << " after " << known);
      std::vector<unsigned long long> words(tile + 1);
      unsigned long long sum = 0;
      for (std::uint32_t k = 0; k < tile; ++k) {
        // Tiles before tile `known` must not be read, so their words have wrong sums.
        const unsigned long long all = DeltaSum{(3ull << 31) | 0x7FFF0000}.both;
        const unsigned long long own = (k + 1ull) << 31 | (k % 7);
        words[k] = k == known ? all << 2 | 2 : k < known ? 999999ull << 2 | 1 : own << 2 | 1;
        if (k == known) sum = all;
        if (k > known) sum += own;
      }
      const OnDevice<unsigned long long> there(words);
      const OnDevice<unsigned long long> before(std::vector<unsigned long long>(1));
      CudaSpace space;
      space.launch<lookBackKernel>(1, 32,
                                   LookBack{{nullptr, writable(there)}, tile, 5, writable(before)});
      space.wait();
      EXPECT_EQ(download(before.view())[0], sum);
      EXPECT_EQ(download(there.view())[tile], (sum + 5) << 2 | 2) << "publishes its inclusive sum";
    }
}

// Lists too long for the mapped memory are written again and copied. Here both lists, one list, or
// no list is too long.
TEST_F(CudaLists, CopiedListsEqualTheHosts) {
  Random random(605);
  Options options;
  options.pinnedDeltaMiB = 0;
  Both both(options);
  Boxes crowd(60, test::boxAt(0, 0, 0, 1)), loose = apart(70), half = crowd, other = crowd;
  for (std::size_t i = 0; i < 30; ++i) half[i] = loose[i];
  for (std::size_t i = 15; i < 55; ++i) other[i] = test::boxAt(0, 10, 0, 1);
  std::vector<std::uint8_t> removedObjects(60);
  removedObjects[50] = removedObjects[3] = 1;
  for (const Boxes* boxes : {&crowd, &loose, &crowd, &half, &other, &half, &crowd, &crowd})
    ASSERT_NO_FATAL_FAILURE(
        both.step(*boxes, boxes == &half ? removedObjects : std::vector<std::uint8_t>{}));
}

// After a switch between host and GPU, the pipeline that takes over knows the pairs of the previous
// step, but not its boxes.
TEST_F(CudaLists, DeltasAreRelativeToPairsOfAnotherSpace) {
  Random random(606);
  Both both;
  Boxes boxes = test::boxSets()[0].make(300, random);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const Boxes elsewhere =
        test::boxSets()[static_cast<std::size_t>(round % 3)].make(random.below(400), random);
    both.setPreviousPairs(test::bruteForce(elsewhere));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes, std::vector<std::uint8_t>(random.below(300), 1)));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
    boxes[random.below(300)] = boxes[7];
  }
}

}  // namespace
}  // namespace lbvh
