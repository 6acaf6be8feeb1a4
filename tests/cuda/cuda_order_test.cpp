// SPDX-License-Identifier: Zlib
// Tests that a GPU may keep an order of boxes for several steps. Pairs and deltas must equal the
// host's, whatever happens to the boxes during these steps. Skipped if there is no device.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "broadphase/pair_finder.h"
#include "cuda_fixture.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

class CudaOrder : public test::OnCuda {};

/// A finder on the GPU and one on the host, with the same input.
class Both {
 public:
  Both() : gpu_(on(Backend::cuda)), host_(on(Backend::host)) {}

  void step(const Boxes& boxes, const std::vector<Filter>& filters = {}) {
    gpu_.update(view(boxes), view(filters));
    host_.update(view(boxes), view(filters));
    ASSERT_NO_FATAL_FAILURE(test::expectAsOnHost(gpu_, host_));
    kept_ += !sorted();
  }
  void replaceObject(std::uint32_t index) {
    gpu_.replaceObject(index);
    host_.replaceObject(index);
  }

  /// Whether the last step sorted its boxes.
  bool sorted() const { return gpu_.stats().sortMs > 0; }
  int kept() const { return kept_; }
  std::size_t pairs() { return gpu_.pairs().size(); }

 private:
  static PairFinder on(Backend backend) {
    Options options;
    options.backend = backend;
    options.threads = 1;
    options.stageTimes = true;
    return PairFinder(options);
  }

  PairFinder gpu_, host_;
  int kept_ = 0;  ///< number of steps that did not sort
};

/// A row of unit boxes that touch their neighbours.
Boxes row(std::size_t n) {
  Boxes boxes;
  for (std::size_t i = 0; i < n; ++i)
    boxes.push_back(test::boxAt(static_cast<float>(i), 0, 0, 0.5f));
  return boxes;
}

void shuffle(Boxes& boxes, Random& random) {
  for (auto left = static_cast<std::uint32_t>(boxes.size()); left > 1; --left)
    std::swap(boxes[left - 1], boxes[random.below(left)]);
}

void moveBy(Aabb& box, float x, float y, float z) {
  const float by[] = {x, y, z};
  for (int axis = 0; axis < 3; ++axis) box.min[axis] += by[axis], box.max[axis] += by[axis];
}

TEST_F(CudaOrder, FollowsAHundredStepsOfFastMotion) {
  Random random(401);
  Both both;
  Boxes boxes = test::boxSets()[0].make(150, random);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    const float reach = round % 5 == 4 ? 0.0f : round % 2 == 0 ? 4.0f : 0.5f;
    for (Aabb& box : boxes)
      moveBy(box, random.uniform(-reach, reach), random.uniform(-reach, reach),
             random.uniform(-reach, reach));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
  }
  EXPECT_GT(both.kept(), 20);
}

// The order was good in the previous step, so only the limit on extents can make this step sort.
TEST_F(CudaOrder, StepInWhichAllBoxesJumpSortsThem) {
  Random random(402);
  Both both;
  Boxes boxes = row(1000);
  for (int round = 0; round < 3; ++round) {
    for (int quiet = 0; quiet < 3; ++quiet) ASSERT_NO_FATAL_FAILURE(both.step(boxes));
    EXPECT_FALSE(both.sorted());
    shuffle(boxes, random);
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
    EXPECT_TRUE(both.sorted()) << "in its second run";
    EXPECT_EQ(both.pairs(), 999u);
  }
}

TEST_F(CudaOrder, TwoDistantBoxesMayBeExchanged) {
  Both both;
  Boxes boxes = row(600);
  for (int round = 0; round < 2; ++round) ASSERT_NO_FATAL_FAILURE(both.step(boxes));
  for (const auto& [a, b] : {std::pair{0, 599}, {31, 32}, {5, 500}, {0, 599}}) {
    std::swap(boxes[static_cast<std::size_t>(a)], boxes[static_cast<std::size_t>(b)]);
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
  }
  EXPECT_GE(both.kept(), 3);
}

TEST_F(CudaOrder, BoxesOfEveryKindAppearAndVanish) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Aabb kinds[] = {{{kNan, 0, 0}, {1, 1, 1}},
                        {{9, 9, 9}, {2, 2, 2}},
                        {{-1e18f, -1e18f, -1e18f}, {1e18f, 0, 1e18f}},
                        {{-kInf, -kInf, -kInf}, {kInf, kInf, kInf}},
                        {{kInf, kInf, kInf}, {-kInf, -kInf, -kInf}},
                        {{0, 0, kNan}, {kInf, 1, 1}}};
  Random random(403);
  Both both;
  const Boxes home = test::boxSets()[0].make(250, random);
  Boxes boxes = home;
  std::vector<Filter> filters(home.size());
  for (Filter& filter : filters) filter = {1 << random.below(3), static_cast<int>(random.bits())};
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    for (int change = 0; change < 12; ++change) {
      const std::uint32_t i = random.below(250);
      boxes[i] = change % 2 == 0 ? home[i] : kinds[random.below(6)];
    }
    if (round == 20) boxes.assign(boxes.size(), kinds[0]);
    if (round == 22) boxes.assign(boxes.size(), kinds[1]);
    if (round == 24) boxes = home;
    if (round % 4 == 3) both.replaceObject(random.below(250));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes, round % 8 < 4 ? filters : std::vector<Filter>{}));
  }
  EXPECT_GT(both.kept(), 10);
}

// The capacity is 512. A kept order has the indices of new boxes, but not at their positions along
// the curve.
TEST_F(CudaOrder, NumberOfBoxesMayChangeWithinTheCapacity) {
  Random random(404);
  Both both;
  const Boxes all = test::boxSets()[0].make(512, random);
  const auto first = [&](std::size_t n) {
    return Boxes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
  };
  ASSERT_NO_FATAL_FAILURE(both.step(first(300)));
  ASSERT_NO_FATAL_FAILURE(both.step(first(333)));
  EXPECT_FALSE(both.sorted()) << "33 boxes are new";
  ASSERT_NO_FATAL_FAILURE(both.step(first(334)));
  EXPECT_TRUE(both.sorted()) << "34 boxes are new";
  for (const std::size_t n : {260u, 366u, 257u, 300u, 512u, 511u, 400u, 600u, 512u, 0u, 512u, 1u}) {
    SCOPED_TRACE(n);
    Boxes boxes = first(std::min<std::size_t>(n, 512));
    boxes.resize(n, all[0]);
    for (Aabb& box : boxes) moveBy(box, random.uniform(-0.1f, 0.1f), 0, 0);
    if (n > 20) both.replaceObject(static_cast<std::uint32_t>(n) - 20);
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
  }
}

// The numbers of oversized boxes are close to the size of a block. With filters, some planes accept
// no other plane.
TEST_F(CudaOrder, ManyOversizedBoxesOverlapEachOtherAndTheRest) {
  Random random(405);
  for (const std::size_t count : {1u, 31u, 32u, 33u, 70u}) {
    SCOPED_TRACE(count);
    Both both;
    Boxes boxes = test::boxSets()[0].make(300, random);
    std::vector<Filter> filters(boxes.size(), Filter{1, -1});
    for (std::size_t k = 0; k < count; ++k) {
      const float y = 0.2f * static_cast<float>(k);
      const Aabb plane = {{-1e18f, y, -1e18f}, {1e18f, y + (k % 3 == 0 ? 9 : 0.1f), 1e18f}};
      boxes[(k * 97 + 5) % 300] = plane;
      filters[(k * 97 + 5) % 300] = {2, k % 2 == 0 ? 1 : 3};
    }
    ASSERT_NO_FATAL_FAILURE(both.step(boxes));
    ASSERT_NO_FATAL_FAILURE(both.step(boxes, filters));
    EXPECT_FALSE(both.sorted());
    for (Aabb& box : boxes) moveBy(box, 0, random.uniform(-0.3f, 0.3f), 0);
    std::swap(boxes[5], boxes[6]);
    ASSERT_NO_FATAL_FAILURE(both.step(boxes, filters));
  }
}

}  // namespace
}  // namespace lbvh
