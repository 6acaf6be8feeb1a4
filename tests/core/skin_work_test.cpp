// SPDX-License-Identifier: Zlib
// Measures the work of steps with a skin for many kinds of motion: how many blocks are tested,
// compared with a finder without a skin. Also measures the work of queries after such steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "broadphase/host/block_query.h"
#include "broadphase/host/simd/kernels.h"
#include "broadphase/host/step.h"
#include "portable.h"
#include "skin_hook.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

const SimdKernels& own = simdKernels();
std::uint64_t blocksTested = 0, candidatesTested = 0;

/// The processor's kernels with counters. Only one thread may use them.
SimdKernels countingKernels() {
  SimdKernels kernels = own;
  kernels.search = [](const PackedBoxes& queries, const PackedBoxes& targets, ListKind kind,
                      std::uint32_t begin, std::uint32_t end, const SearchMemory& memory,
                      NeighbourLists lists, const NeighbourCount& count,
                      const NeighbourFilter* filter) {
    const std::uint64_t before = *count.tests;
    const bool isWhole =
        own.search(queries, targets, kind, begin, end, memory, lists, count, filter);
    blocksTested += *count.tests - before;
    return isWhole;
  };
  kernels.searchByRank = [](const PackedBoxes& boxes, std::uint32_t begin, std::uint32_t end,
                            const SearchMemory& memory, const RankLists& lists,
                            const NeighbourCount& count) {
    const std::uint64_t before = *count.tests;
    const bool isWhole = own.searchByRank(boxes, begin, end, memory, lists, count);
    blocksTested += *count.tests - before;
    return isWhole;
  };
  kernels.findFlips = [](const Aabb* boxes, const Aabb& box, const std::uint32_t* candidates,
                         std::uint32_t count) {
    candidatesTested += count;
    return own.findFlips(boxes, box, candidates, count);
  };
  return kernels;
}

class Finder {
 public:
  explicit Finder(const char* skin, int threads = 1)
      : kernels_(threads == 1 ? countingKernels() : own) {
    test::forceSkin(skin);
    pipeline_ = makeHostPipeline(threads, kernels_);
    test::forceSkin("automatic");
  }

  /// @return how many boxes were searched for
  std::size_t step(const Boxes& boxes) {
    blocksTested = candidatesTested = 0;
    StepStats stats;
    stats.searched = boxes.size();
    pipeline_->step({view(boxes), {}, {}, Options{}.maxPairs, {}}, stats);
    return stats.searched;
  }

  Pipeline* operator->() const { return pipeline_.get(); }
  const PackedBoxes& scene() const { return *pipeline_->packed(); }

 private:
  const SimdKernels kernels_;
  std::unique_ptr<Pipeline> pipeline_;
};

/// Boxes that fill a cube and have about five neighbours each, and ways to move them.
struct Moving {
  explicit Moving(int count) : side(1.1f * std::cbrt(static_cast<float>(count))) {
    boxes.resize(static_cast<std::size_t>(count));
    directions.resize(boxes.size());
    for (Aabb& box : boxes) teleport(box);
    for (Aabb& direction : directions)
      for (float& along : direction.min) along = random.uniform(-1, 1);
  }

  void teleport(Aabb& box) {
    box = boxAt(random.uniform(0, side), random.uniform(0, side), random.uniform(0, side),
                random.uniform(0.3f, 0.6f));
  }
  void teleport(float share) {
    for (Aabb& box : boxes)
      if (random.uniform(0, 1) < share) teleport(box);
  }
  /// Moves every `every`-th box in a straight line, and reverses its direction at the faces of the
  /// cube.
  void fly(std::size_t every, float by) {
    for (std::size_t i = 0; i < boxes.size(); i += every)
      for (int axis = 0; axis < 3; ++axis) {
        float& along = directions[i].min[axis];
        const float middle = boxes[i].min[axis];
        if (middle < 0 || middle > side) along = std::abs(along) * (middle < 0 ? 1.0f : -1.0f);
        boxes[i].min[axis] += by * along;
        boxes[i].max[axis] += by * along;
      }
  }

  const float side;
  Random random{901};
  Boxes boxes, directions, before;
};

struct Motion {
  std::string name;
  std::function<void(Moving&, int step)> step;
};

std::vector<Motion> motions() {
  std::vector<Motion> all;
  for (const float percent : {0.1f, 1.0f, 5.0f, 10.0f, 20.0f, 40.0f, 100.0f})
    all.push_back({"teleport " + std::to_string(percent),
                   [=](Moving& scene, int) { scene.teleport(percent / 100); }});
  for (const std::size_t every : {20u, 10u, 3u, 1u})
    for (const float by : {0.05f, 0.3f, 1.0f, 4.0f})
      all.push_back({"1 of " + std::to_string(every) + " flies " + std::to_string(by),
                     [=](Moving& scene, int) { scene.fly(every, by); }});
  for (const std::size_t every : {50u, 10u, 3u})
    all.push_back(
        {"1 of " + std::to_string(every) + " jumps and returns", [=](Moving& scene, int step) {
           if (step % 2 == 1) return scene.boxes.swap(scene.before);
           scene.before = scene.boxes;
           for (std::size_t i = 0; i < scene.boxes.size(); i += every)
             scene.teleport(scene.boxes[i]);
         }});
  all.push_back({"bursts", [](Moving& scene, int step) {
                   if (step % 16 < 4) scene.teleport(0.4f);
                 }});
  all.push_back({"all come to rest", [](Moving& scene, int step) {
                   scene.fly(1, 0.2f / static_cast<float>(1 + step));
                 }});
  all.push_back({"more come", [](Moving& scene, int) {
                   for (int more = 0; more < 40; ++more) {
                     scene.boxes.emplace_back();
                     scene.teleport(scene.boxes.back());
                   }
                 }});
  return all;
}

constexpr int kRestFirst = 6, kSteps = 40;

/// How many blocks a full search by rank tests right after the boxes were sorted. With a skin, a
/// full search finds each pair from both sides, and tests about 1.7 times as many blocks.
double testsOfNewOrder(const Boxes& boxes) {
  Finder finder("never");
  finder.step(boxes);
  return static_cast<double>(blocksTested);
}

TEST(SkinWork, StepTestsFewMoreBlocksThanAFullSearch) {
  for (const Motion& motion : motions()) {
    SCOPED_TRACE(motion.name);
    Finder finder("automatic"), plain("never");
    Moving scene(8000);
    std::vector<double> costs, plainCosts;
    std::uint64_t candidates = 0;
    for (int k = -kRestFirst; k < kSteps; ++k) {
      if (k >= 0) motion.step(scene, k);
      const bool isAll = finder.step(scene.boxes) == scene.boxes.size();
      const auto cost = static_cast<double>(blocksTested);
      candidates += candidatesTested;
      plain.step(scene.boxes);
      const auto plainCost = static_cast<double>(blocksTested);
      const double all = testsOfNewOrder(scene.boxes);
      costs.push_back(cost / (1.7 * all));
      plainCosts.push_back(plainCost / all);
      EXPECT_LE(costs.back(), isAll ? 2.5 : 1.5) << "step " << k;
      EXPECT_LE(plainCosts.back(), 2.8) << "step " << k << ", without a skin";
      ASSERT_EQ(toVector(finder->added()), toVector(plain->added())) << "step " << k;
      ASSERT_EQ(toVector(finder->removed()), toVector(plain->removed())) << "step " << k;
    }
    for (std::size_t k = 10; k <= costs.size(); ++k) {
      double ten = 0;
      double plainTen = 0;
      for (std::size_t i = k - 10; i < k; ++i) {
        ten += costs[i];
        plainTen += plainCosts[i];
      }
      EXPECT_LE(ten, 15) << "until step " << k;
      EXPECT_LE(plainTen, 18) << "until step " << k << ", without a skin";
    }
    const auto mean = [](const std::vector<double>& of) {
      return std::accumulate(of.begin(), of.end(), 0.0) / double(of.size());
    };
    std::printf(
        "%-28s blocks %4.2f of a full search, at most %4.2f; without a skin %4.2f of a search "
        "by rank, at most %4.2f; candidates per box %4.1f\n",
        motion.name.c_str(), mean(costs), *std::max_element(costs.begin(), costs.end()),
        mean(plainCosts), *std::max_element(plainCosts.begin(), plainCosts.end()),
        double(candidates) / double(costs.size() * scene.boxes.size()));
  }
}

// The order is renewed before the search gets slow, and each step searches once.
TEST(SkinWork, NewRanksNeedNoSecondSearch) {
  Finder plain("never");
  Moving scene(8000);
  plain.step(scene.boxes);
  double sum = 0;
  for (int k = 0; k < kSteps; ++k) {
    scene.fly(1, 0.3f);
    plain.step(scene.boxes);
    const auto tests = static_cast<double>(blocksTested);
    const double cost = tests / testsOfNewOrder(scene.boxes);
    EXPECT_LE(cost, 1.5) << k;
    sum += cost;
  }
  EXPECT_LE(sum / kSteps, 1.2);
  EXPECT_GE(sum / kSteps, 1.03) << "the order is hardly ever kept";
}

// Some platforms have too few candidates to be hubs, others are hubs.
TEST(SkinWork, MovingPlatformCostsInProportionToItsPartners) {
  constexpr int kSide = 100;
  for (const int side : {20, 30, 33, 40, 60, 80}) {
    Finder finder("always");
    Boxes boxes;
    for (int i = 0; i < kSide * kSide; ++i)
      boxes.push_back(boxAt(float(i % kSide), 0, float(i / kSide), 0.45f));
    const float end = float(side) - 0.5f;
    boxes.push_back({{-0.5f, 0.4f, -0.5f}, {end, 1, end}});
    finder.step(boxes);
    finder.step(boxes);
    const auto partners = static_cast<std::uint64_t>(side * side);
    ASSERT_EQ(finder->pairs().size(), partners);
    for (int k = 0; k < 10; ++k) {
      for (int axis = 0; axis < 3; ++axis) {
        boxes.back().min[axis] += 0.01f;
        boxes.back().max[axis] += 0.01f;
      }
      EXPECT_LE(finder.step(boxes), 1u) << partners;
      EXPECT_LE(blocksTested, 64 + partners / 2) << partners;
      EXPECT_LE(candidatesTested, partners + partners / 4) << partners;
    }
  }
}

// All boxes have more candidates than the usual limit. There would be too many hubs, so the limit
// is raised, and no box is a hub.
TEST(SkinWork, MovingBoxInACrowdCostsInProportionToItsPartners) {
  Finder finder("automatic");
  Boxes boxes(1500, boxAt(0, 0, 0, 0.5f));
  for (int k = 0; k < 40; ++k) {
    boxes[700] = boxAt(0.01f * float(k % 5), 0, 0, 0.5f);
    const std::size_t searched = finder.step(boxes);
    if (k < 20) continue;  // until the finder uses a skin
    EXPECT_LE(searched, 1u) << k;
    EXPECT_LE(candidatesTested, 1500u) << k;
  }
  EXPECT_EQ(finder->pairs().size(), 1500u * 1499 / 2);
}

// The moving boxes are far apart. The larger the world, the more resting boxes lie between the
// moving boxes of a block.
TEST(SkinWork, FewMovingBoxesDoNotCostMoreInALargeWorld) {
  for (const int count : {5000, 50'000, 500'000}) {
    Finder finder("always");
    Moving scene(count);
    finder.step(scene.boxes);
    finder.step(scene.boxes);
    for (int k = 0; k < 6; ++k) {
      scene.fly(scene.boxes.size() / 64, 1);
      const std::size_t searched = finder.step(scene.boxes);
      ASSERT_LE(searched, 65u);
      EXPECT_LE(blocksTested, 25 * searched) << count;
    }
  }
}

TEST(SkinWork, AllBoxesAreSearchedForTwiceIfTheCallerNamesFewChanges) {
  test::forceSkin("automatic");
  Options options;
  options.backend = Backend::host;
  PairFinder finder(options);
  Moving scene(8000);
  std::vector<std::uint64_t> changed(scene.boxes.size() / 64);
  finder.update(view(scene.boxes));
  for (std::size_t step = 0; step < 10; ++step) {
    scene.teleport(scene.boxes[step]);
    changed[0] = std::uint64_t{1} << step;
    finder.update(view(scene.boxes), {}, {changed.data(), changed.size()});
    EXPECT_EQ(finder.stats().searched, step == 0 ? scene.boxes.size() : 1u) << step;
  }
}

// The boxes are grown before their directions are known, so few of them escape in the second step.
TEST(SkinWork, FewBoxesAreSearchedForIfTheCallerNamesATenth) {
  test::forceSkin("automatic");
  Options options;
  options.backend = Backend::host;
  PairFinder finder(options);
  Moving scene(8000);
  std::vector<std::uint64_t> changed(scene.boxes.size() / 64);
  for (std::size_t i = 0; i < scene.boxes.size(); i += 10)
    changed[i / 64] |= std::uint64_t{1} << i % 64;
  finder.update(view(scene.boxes));
  for (int step = 0; step < 20; ++step) {
    scene.fly(10, 0.02f);
    finder.update(view(scene.boxes), {}, {changed.data(), changed.size()});
    if (step > 0) EXPECT_LE(finder.stats().searched, scene.boxes.size() / 20) << step;
  }
  EXPECT_EQ(toVector(finder.pairs()), test::bruteForce(scene.boxes));
}

/// How many bounds and boxes 100 queries test. Half of the queries look for overlaps with a small
/// box, and the others for overlaps with a beam along an axis.
std::size_t testsOfQueries(const PackedBoxes& scene, float side) {
  Random random(902);
  std::size_t tests = 0;
  for (int k = 0; k < 100; ++k) {
    Aabb around =
        boxAt(random.uniform(0, side), random.uniform(0, side), random.uniform(0, side), 1);
    if (k % 2 == 0) around.min[k % 3] = -(around.max[k % 3] = INFINITY);
    const auto hits = [&](const Aabb& bounds) {
      ++tests;
      return overlap(bounds, around);
    };
    queryPacked(scene, hits, [](std::uint32_t) {});
  }
  return tests;
}

TEST(SkinWork, QueriesBecomeFastAfterBoxesComeToRest) {
  for (const bool isTold : {false, true})
    for (const Motion& motion : motions()) {
      SCOPED_TRACE(motion.name);
      Finder finder("automatic"), plain("never");
      Moving scene(8000);
      for (int k = -kRestFirst; k < kSteps; ++k) {
        if (k >= 0) motion.step(scene, k);
        finder.step(scene.boxes);
      }
      for (int k = 0; k < 100; ++k) {
        if (isTold)
          finder->rest();
        else
          finder.step(scene.boxes);
      }
      plain.step(scene.boxes);
      EXPECT_LE(double(testsOfQueries(finder.scene(), scene.side)),
                1.5 * double(testsOfQueries(plain.scene(), scene.side)));
    }
}

TEST(SkinWork, UpdatesWithoutChangesMakeQueriesFastAgain) {
  const auto finderWith = [](const char* skin) {
    test::forceSkin(skin);
    Options options;
    options.backend = Backend::host;
    options.threads = 1;
    PairFinder finder(options);
    test::forceSkin("automatic");
    return finder;
  };
  PairFinder finder = finderWith("automatic"), plain = finderWith("never");
  Moving scene(8000);
  for (int k = -kRestFirst; k < 6; ++k) {
    if (k >= 0) scene.teleport(0.003f);
    finder.update(view(scene.boxes));
  }
  plain.update(view(scene.boxes));
  const auto tests = [&](const PairFinder& of) {
    return static_cast<double>(testsOfQueries(*packedOf(of), scene.side));
  };
  const double best = tests(plain);
  EXPECT_GT(tests(finder), 1.2 * best) << "the order is worn";
  for (int k = 0; k < 100; ++k) finder.updateUnchanged();
  EXPECT_LT(tests(finder), 1.1 * best);
  EXPECT_EQ(toVector(finder.pairs()), toVector(plain.pairs()));
}

TEST(SkinWork, BoxOrderDoesNotDependOnThreadCount) {
  const auto orderOf = [](const PackedBoxes& scene) {
    std::vector<std::uint32_t> order;
    queryPacked(
        scene, [](const Aabb&) { return true; }, [&](std::uint32_t box) { order.push_back(box); });
    return order;
  };
  for (const float share : {0.01f, 0.05f, 0.4f}) {
    Finder one("automatic"), three("automatic", 3);
    Moving scene(20'000);
    for (int k = -kRestFirst; k < 12; ++k) {
      if (k >= 0) scene.teleport(share);
      const std::size_t searched = one.step(scene.boxes);
      ASSERT_EQ(three.step(scene.boxes), searched) << "step " << k;
      ASSERT_EQ(orderOf(three.scene()), orderOf(one.scene())) << "step " << k;
    }
  }
}

}  // namespace
}  // namespace lbvh
