// SPDX-License-Identifier: Zlib
// Tests steps on a GPU that search only for the pairs of the few boxes that changed. Pairs and
// changes must equal the pairs and changes of a finder on the host, which searches for the pairs of
// all boxes. Skipped if there is no device.
#include <gtest/gtest.h>

#include <limits>

#include "broadphase/core/test_hooks.h"
#include "broadphase/pair_finder.h"
#include "cuda_fixture.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

class CudaFew : public test::OnCuda {};

/// A finder on the GPU and one on the host, with the same boxes. The host always searches for the
/// pairs of all boxes.
class FewTwins {
 public:
  FewTwins() : gpu_(on(Backend::cuda)), host_(on(Backend::host)) {}

  Boxes boxes;
  std::vector<Filter> filters;

  void set(std::size_t i, const Aabb& box) {
    boxes[i] = box;
    mark(i);
  }
  void setFilter(std::size_t i, Filter filter) {
    filters[i] = filter;
    mark(i);
  }
  void replace(std::size_t i) {
    gpu_.replaceObject(static_cast<std::uint32_t>(i));
    host_.replaceObject(static_cast<std::uint32_t>(i));
  }
  void resize(std::size_t n, const Aabb& fresh) {
    const std::size_t before = boxes.size();
    boxes.resize(n, fresh);
    if (!filters.empty()) filters.resize(n);
    changed_.resize(n / 64 + 1);
    for (std::size_t i = before; i < n; ++i) mark(i);
  }

  /// @param tells whether to pass the change bits
  void step(bool tells) {
    gpu_.update(view(boxes), view(filters), tells ? view(changed_) : View<const std::uint64_t>{});
    host_.update(view(boxes), view(filters));
    changed_.assign(boxes.size() / 64 + 1, 0);
    ASSERT_NO_FATAL_FAILURE(test::expectAsOnHost(gpu_, host_));
    fewSteps_ += searched() < boxes.size();
  }

  std::size_t searched() const { return gpu_.stats().searched; }
  std::size_t pairs() { return gpu_.pairs().size(); }
  int fewSteps() const { return fewSteps_; }

 private:
  static PairFinder on(Backend backend) {
    Options options;
    options.backend = backend;
    options.threads = 1;
    const TestHooks::Skin before = std::exchange(testHooks.skin, TestHooks::Skin::never);
    PairFinder finder(options);
    testHooks.skin = before;
    return finder;
  }
  void mark(std::size_t i) {
    changed_.resize(std::max(changed_.size(), i / 64 + 1));
    changed_[i / 64] |= std::uint64_t{1} << i % 64;
  }

  PairFinder gpu_, host_;
  std::vector<std::uint64_t> changed_;
  int fewSteps_ = 0;
};

Aabb boxIn(Random& random, float side, float half) {
  return test::boxAt(random.uniform(0, side), random.uniform(0, side), random.uniform(0, side),
                     random.uniform(0, half));
}

/// A random box in a cube, or less often a NaN, inverted, oversized, infinite or large box.
Aabb anyBox(Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (random.below(24)) {
    case 0:
      return {{std::numeric_limits<float>::quiet_NaN(), 0, 0}, {1, 1, 1}};
    case 1:
      return {{9, 9, 9}, {2, 2, 2}};
    case 2:
      return {{-1e18f, 3, -1e18f}, {1e18f, 4, 1e18f}};
    case 3:
      return {{-kInf, -kInf, -kInf}, {kInf, kInf, 5}};
    case 4:
      return test::boxAt(5, 5, 5, 4);
    default:
      return boxIn(random, 12, 1);
  }
}

/// Randomly changes boxes, filters and the number of boxes, and replaces objects.
void changeSome(FewTwins& twins, Random& random) {
  const std::size_t n = twins.boxes.size();
  const auto any = [&] { return std::size_t{random.below(static_cast<std::uint32_t>(n))}; };
  const std::uint32_t most = random.below(20) == 0 ? 300 : random.below(3) == 0 ? 40 : 5;
  for (std::uint32_t k = random.below(most); k > 0; --k) {
    const std::size_t i = any();
    Aabb box = anyBox(random);
    if (random.below(2) == 0) {
      box = twins.boxes[i];
      for (float* corner : {box.min, box.max})
        corner[random.below(3)] += random.uniform(-0.2f, 0.2f);
    }
    twins.set(i, box);
  }
  if (!twins.filters.empty() && random.below(4) == 0)
    twins.setFilter(any(), {1 << random.below(3), static_cast<int>(random.bits())});
  if (random.below(6) == 0) twins.replace(any());
  if (random.below(100) == 0) {
    if (twins.filters.empty())
      twins.filters.assign(n, Filter{1, -1});
    else
      twins.filters.clear();
  }
  if (random.below(8) == 0)  // at most 256 boxes, the capacity of the padded arrays
    twins.resize(std::min<std::size_t>(256, n + random.below(7) - 3), anyBox(random));
  if (random.below(500) == 0) twins.resize(200 + random.below(200), anyBox(random));
}

void followSteps(int steps, std::uint32_t seed) {
  Random random(seed);
  FewTwins twins;
  twins.resize(230, {});
  for (std::size_t i = 0; i < 230; ++i) twins.set(i, boxIn(random, 12, 1));
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    changeSome(twins, random);
    ASSERT_NO_FATAL_FAILURE(twins.step(random.below(2) == 0));
  }
  EXPECT_GT(twins.fewSteps(), steps / 2);
}

TEST_F(CudaFew, FollowRandomSteps) { followSteps(250, 701); }
TEST_F(CudaFew, FollowManyRandomSteps) { followSteps(test::manySteps(1000), 702); }

// A batch holds 32 changed boxes. Some of these boxes lie in the same block. The changed boxes form
// groups of four. The boxes of a group overlap each other, but no boxes of other groups.
TEST_F(CudaFew, PairsOfChangedBoxesCountOnce) {
  Random random(703);
  FewTwins twins;
  twins.resize(1100, {});
  for (std::size_t i = 0; i < 1100; ++i) twins.set(i, boxIn(random, 20, 1));
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  for (const std::size_t count : {1u, 2u, 31u, 32u, 33u, 70u}) {
    SCOPED_TRACE(count);
    for (std::size_t k = 0; k < count; ++k)
      twins.set(k * (1100 / count),
                test::boxAt(static_cast<float>(k / 4), 9, 9, random.uniform(0.3f, 0.4f)));
    ASSERT_NO_FATAL_FAILURE(twins.step(true));
    EXPECT_EQ(twins.searched(), count);
    for (std::size_t k = 0; k < count; ++k) twins.set(k * (1100 / count), boxIn(random, 20, 1));
    ASSERT_NO_FATAL_FAILURE(twins.step(true));
    EXPECT_EQ(twins.searched(), count);
  }
}

// All boxes are equal, and their filters refuse each other. Then a few boxes get filters that match
// other boxes' filters, or that no longer match them. So the filters of the tree nodes above these
// boxes must change.
TEST_F(CudaFew, ChangedFiltersAreFound) {
  FewTwins twins;
  twins.resize(3000, test::boxAt(0, 0, 0, 1));
  twins.filters.assign(3000, Filter{1, 4});
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  EXPECT_EQ(twins.pairs(), 0u);
  const auto change = [&](std::size_t i, Filter filter, std::size_t pairs) {
    SCOPED_TRACE(i);
    twins.setFilter(i, filter);
    ASSERT_NO_FATAL_FAILURE(twins.step(i % 2 == 0));
    EXPECT_EQ(twins.searched(), 1u);
    EXPECT_EQ(twins.pairs(), pairs);
  };
  change(2900, {8, 16}, 0);
  change(17, {16, 8}, 1);
  change(1500, {16, 8}, 2);
  change(2900, {8, 4}, 0);
  change(2900, {24, 24}, 2);
  change(40, {1, 8}, 2);
  change(41, {8, 1}, 3);
}

/// A row of unit boxes that touch their neighbours, with a gap after every ten.
Boxes row(std::size_t n) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i)
    boxes.push_back(
        test::boxAt(static_cast<float>(i) + 0.1f * static_cast<float>(i / 10), 0, 0, 0.5f));
  return boxes;
}

// About 4,500 pairs fill three tiles. A plank overlaps many boxes. Its index and position determine
// which tiles get its pairs.
TEST_F(CudaFew, PairsMayBeginAndEndInEveryTileOfTheList) {
  FewTwins twins;
  twins.resize(5000, {});
  const Boxes boxes = row(5000);
  for (std::size_t i = 0; i < 5000; ++i) twins.set(i, boxes[i]);
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  const std::size_t before = twins.pairs();
  for (const float from : {-2.0f, 1890.0f, 2200.0f, 4400.0f, 5300.0f, 9000.0f})
    for (const std::size_t plank : {0u, 2500u, 4999u}) {
      SCOPED_TRACE(from);
      twins.set(plank, {{from, 0.2f, 0}, {from + 200, 1, 1}});
      ASSERT_NO_FATAL_FAILURE(twins.step(true));
      EXPECT_EQ(twins.searched(), 1u);
      twins.set(plank, boxes[plank]);
      ASSERT_NO_FATAL_FAILURE(twins.step(false));
      EXPECT_EQ(twins.searched(), 1u);
    }
  EXPECT_EQ(twins.pairs(), before);
}

// The new pairs do not fit into a tile. So the step runs again for all boxes, and the next step
// also searches for the pairs of all boxes.
TEST_F(CudaFew, StepWithTooManyNewPairsRunsAgainForAllBoxes) {
  Random random(704);
  FewTwins twins;
  twins.resize(1000, {});
  for (std::size_t i = 0; i < 1000; ++i) twins.set(i, boxIn(random, 40, 1));
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  const Aabb old = twins.boxes[500], all = {{-1, -1, -1}, {50, 50, 50}};
  twins.set(500, all);
  ASSERT_NO_FATAL_FAILURE(twins.step(true));
  EXPECT_EQ(twins.searched(), 1000u);
  twins.set(500, old);
  ASSERT_NO_FATAL_FAILURE(twins.step(true));
  EXPECT_EQ(twins.searched(), 1000u) << "searches for the pairs of few boxes pause after a failure";
  twins.set(499, boxIn(random, 40, 1));
  ASSERT_NO_FATAL_FAILURE(twins.step(true));
  EXPECT_EQ(twins.searched(), 1u);
}

// The 7,140 pairs of 120 equal boxes exceed the capacity, although it includes a reserve of an
// eighth.
TEST_F(CudaFew, PairsBeyondTheCapacityAreFound) {
  FewTwins twins;
  twins.resize(1000, {});
  const Boxes boxes = row(1000);
  for (std::size_t i = 0; i < 1000; ++i) twins.set(i, boxes[i]);
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  for (std::size_t k = 0; k < 120; ++k) twins.set(7 * k, test::boxAt(0, 50, 0, 1));
  ASSERT_NO_FATAL_FAILURE(twins.step(true));
  EXPECT_GT(twins.pairs(), 7140u);
}

// The empty lists of all boxes between two boxes with pairs begin at the same index.
TEST_F(CudaFew, FewPairsAmongManyBoxes) {
  FewTwins twins;
  twins.resize(5000, {});
  Random random(611);
  for (std::size_t i = 0; i < 5000; ++i) twins.set(i, test::boxAt(3 * float(i), 0, 0, 1));
  for (int step = 0; step < 3; ++step) ASSERT_NO_FATAL_FAILURE(twins.step(true));
  ASSERT_EQ(twins.pairs(), 0u);
  for (int step = 0; step < 12; ++step) {
    for (std::size_t k = random.below(4); k > 0; --k) {
      const std::size_t i = random.below(5000), to = random.below(5000);
      twins.set(i, test::boxAt(3 * float(random.below(3) == 0 ? i : to), 0, 0, 1));
    }
    ASSERT_NO_FATAL_FAILURE(twins.step(step % 2 == 0));
  }
  EXPECT_GT(twins.pairs(), 3u);
  EXPECT_GE(twins.fewSteps(), 12);
}

TEST_F(CudaFew, StepThatThrowsChangesNothing) {
  Options options;
  options.backend = Backend::cuda;
  options.threads = 1;
  options.maxPairs = 600;
  PairFinder finder(options);
  Boxes boxes = row(500);
  for (int step = 0; step < 3; ++step) finder.update(view(boxes));
  const std::vector<Pair> before = toVector(finder.pairs());
  const Boxes home = boxes;
  for (std::size_t i = 0; i < 40; ++i) boxes[10 * i] = test::boxAt(0, 50, 0, 1);
  EXPECT_THROW(finder.update(view(boxes)), std::length_error);
  EXPECT_EQ(toVector(finder.pairs()), before);
  boxes = home;
  boxes[3] = test::boxAt(0, 90, 0, 1);
  finder.update(view(boxes));
  EXPECT_EQ(finder.pairs().size(), before.size() - 2);
  EXPECT_EQ(finder.removed().size(), 2u);
  EXPECT_EQ(finder.added().size(), 0u);
}

}  // namespace
}  // namespace lbvh
