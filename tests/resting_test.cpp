// Steps in which most boxes rest, on the host: exact and with the right delta whatever moves,
// comes, goes, changes its filter or is removed, and with every set of SIMD instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "broadphase/host/simd/kernels.h"
#include "broadphase/stages/morton.h"
#include "simd_test.h"
#include "support.h"

namespace lbvh {
namespace {

using test::boxAt;
using test::Boxes;
using test::bruteForce;
using test::Pairs;
using test::Random;
using test::toVector;
using test::view;

/// A finder, its boxes, and the pairs that it must find.
class Watched {
 public:
  explicit Watched(int threads, std::uint64_t maxPairs = Options{}.maxPairs)
      : finder(optionsFor(threads, maxPairs)) {}

  /// One step, compared with brute force. Returns how many boxes were searched for.
  std::size_t step(bool tellsWhatChanged = false) {
    // In another array than last time, whose boxes are gone.
    given_[0].swap(given_[1]);
    given_[0] = boxes;
    given_[1].assign(given_[1].size(), boxAt(NAN, NAN, NAN, NAN));
    if (tellsWhatChanged)
      finder.update(view(given_[0]), view(filters), view(changes()));
    else
      finder.update(view(given_[0]), view(filters));
    lastBoxes_ = boxes;
    lastFilters_ = filters;
    const Pairs now = bruteForce(boxes, filters);
    EXPECT_EQ(toVector(finder.pairs()), now);
    EXPECT_EQ(finder.stats().oversizedBoxes, count(BoxClass::oversized));
    EXPECT_EQ(finder.stats().nanBoxes, count(BoxClass::nan));
    const auto counts = [this](Pair pair) {
      return !involvesRemoved(pair, {removed_.data(), removed_.size()});
    };
    Pairs past, added, removed;
    std::copy_if(before_.begin(), before_.end(), std::back_inserter(past), counts);
    std::set_difference(now.begin(), now.end(), past.begin(), past.end(),
                        std::back_inserter(added));
    std::set_difference(past.begin(), past.end(), now.begin(), now.end(),
                        std::back_inserter(removed));
    EXPECT_EQ(toVector(finder.added()), added);
    EXPECT_EQ(toVector(finder.removed()), removed);
    before_ = now;
    removed_.assign(boxes.size(), 0);
    return finder.stats().searched;
  }

  void removeObject(std::uint32_t index) {
    finder.removeObject(index);
    removed_[index] = 1;
  }

  PairFinder finder;
  Boxes boxes;
  std::vector<Filter> filters;

 private:
  std::size_t count(BoxClass boxClass) const {
    return static_cast<std::size_t>(std::count_if(
        boxes.begin(), boxes.end(), [=](const Aabb& box) { return classify(box) == boxClass; }));
  }

  /// A bit for each box that differs, or whose filter differs, from the last step.
  std::vector<std::uint64_t> changes() const {
    const auto differ = [](const auto& now, const auto& last, std::size_t i) {
      return i < last.size() && std::memcmp(&now[i], &last[i], sizeof now[i]) != 0;
    };
    std::vector<std::uint64_t> bits(boxes.size() / 64 + 1);
    for (std::size_t i = 0; i < boxes.size(); ++i)
      if (differ(boxes, lastBoxes_, i) || (!filters.empty() && differ(filters, lastFilters_, i)))
        bits[i / 64] |= std::uint64_t{1} << i % 64;
    return bits;
  }

  static Options optionsFor(int threads, std::uint64_t maxPairs) {
    Options options;
    options.backend = Backend::host;
    options.threads = threads;
    options.maxPairs = maxPairs;
    return options;
  }

  Pairs before_;
  Boxes given_[2];
  Boxes lastBoxes_;
  std::vector<Filter> lastFilters_;
  std::vector<std::uint8_t> removed_;
};

using RestingTest = test::SimdTest;

// Boxes are replaced by others of the kind, which makes ordinary ones NaN, giant, inverted, and
// back.
TEST_P(RestingTest, AnyKindOfBoxMayMove) {
  Random random(51);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    Watched scene(1);
    scene.boxes = set.make(500, random);
    scene.step();
    std::size_t restingSteps = 0;
    for (int k = 0; k < 20; ++k) {
      const Boxes others = set.make(500, random);
      for (int move = 0; move < 15; ++move) {
        const std::uint32_t i = random.below(k < 10 ? 60 : 500);
        scene.boxes[i] = others[i];
      }
      restingSteps += scene.step() < 500;
    }
    EXPECT_GE(restingSteps, 10u);
  }
}

TEST_P(RestingTest, FiltersMayChange) {
  Random random(52);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(600, random);
  scene.filters.resize(600);
  const auto anyFilter = [&] {
    return Filter{1 << random.below(4), static_cast<std::int32_t>(random.bits())};
  };
  for (Filter& filter : scene.filters) filter = anyFilter();
  scene.step();
  for (int k = 0; k < 8; ++k) {
    for (int change = 0; change < 2; ++change) scene.filters[random.below(600)] = anyFilter();
    EXPECT_LE(scene.step(), 16u);
  }
  scene.filters.clear();
  EXPECT_EQ(scene.step(), 600u) << "all filters gone: all boxes searched";
}

TEST_P(RestingTest, BoxesMayBeAddedRemovedAndReplaced) {
  Random random(53);
  for (const int threads : {1, 3}) {
    Watched scene(threads);
    scene.boxes = test::boxSets()[0].make(1020, random);  // beside a power of two
    scene.step();
    std::size_t restingSteps = 0;
    for (int k = 0; k < 60; ++k) {
      const Boxes more = test::boxSets()[0].make(20, random);
      const std::uint32_t change = random.below(20);
      if (random.below(2) == 0)
        scene.boxes.insert(scene.boxes.end(), more.begin(), more.begin() + change);
      else
        scene.boxes.resize(scene.boxes.size() - change);
      for (int removedObjects = 0; removedObjects < 5; ++removedObjects)
        if (const std::uint32_t i = random.below(850); i < scene.boxes.size())
          scene.removeObject(i);
      restingSteps += scene.step() < scene.boxes.size();
    }
    EXPECT_GE(restingSteps, 40u);
  }
}

INSTANTIATE_TEST_SUITE_P(, RestingTest, test::everySimd(), test::simdName);

// Enough pairs that every thread merges some.
TEST(Resting, ThreadsMergeTheirParts) {
  Random random(54);
  Boxes start;
  for (int i = 0; i < 3000; ++i)
    start.push_back(
        boxAt(random.uniform(0, 10), random.uniform(0, 10), random.uniform(0, 10), 0.8f));
  for (const int threads : {1, 2, 4}) {
    Watched scene(threads);
    scene.boxes = start;
    scene.step();
    EXPECT_GT(scene.finder.pairs().size, 60000u);
    for (int k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < scene.boxes.size(); i += 10)
        scene.boxes[i] = start[random.below(3000)];
      EXPECT_EQ(scene.step(), 300u);
    }
  }
}

TEST(Resting, ABoxThatStopsMovingRestsAgain) {
  Random random(55);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  EXPECT_EQ(scene.step(), 400u);
  EXPECT_EQ(scene.step(), 0u);
  for (int i = 0; i < 30; ++i) scene.boxes[static_cast<std::size_t>(i)].max[0] += 0.1f;
  EXPECT_EQ(scene.step(), 30u);
  std::vector<std::size_t> searched;
  for (int k = 0; k < 6; ++k) searched.push_back(scene.step());
  EXPECT_EQ(searched, (std::vector<std::size_t>{30, 30, 30, 400, 0, 0}));
}

TEST(Resting, AllAreSearchedIfMoreThanAQuarterMoves) {
  Random random(56);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(400, random);
  scene.step();
  for (std::size_t i = 0; i < 100; ++i) scene.boxes[i].max[0] += 0.1f;
  EXPECT_EQ(scene.step(), 100u);
  scene.boxes[100].max[0] += 0.1f;
  EXPECT_EQ(scene.step(), 400u);
}

// If the caller does not tell what changed, boxes are compared with copies, but not in every step
// while all move.
TEST(Resting, BoxesThatStopAfterLongMotionRestWithinEighteenSteps) {
  Random random(61);
  for (const bool tells : {false, true}) {
    Watched scene(1);
    scene.boxes = test::boxSets()[0].make(200, random);
    for (int k = 0; k < 40; ++k) {
      for (Aabb& box : scene.boxes) box.max[0] += 0.001f;
      EXPECT_EQ(scene.step(tells), 200u);
    }
    int steps = 1;
    while (scene.step(tells) > 0 && steps < 30) ++steps;
    EXPECT_LE(steps, tells ? 1 : 18);
    EXPECT_GE(steps, tells ? 1 : 2);
  }
}

TEST(Resting, StepAfterAFailedOneHasAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 100; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.step();
  const Boxes apart = scene.boxes;
  for (const std::size_t crowd : {10u, 7u}) {  // too many: with the pairs that rest, and alone
    for (std::size_t i = 0; i < crowd; ++i) scene.boxes[i] = apart[50];
    EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
    EXPECT_EQ(scene.finder.pairs().size, 0u);
    scene.boxes = apart;
    scene.boxes[3] = apart[4];
    EXPECT_LT(scene.step(), 100u);
    scene.boxes = apart;
    scene.step();
  }
}

// Pairs of the last step that was finished have greater indices than any box of the one that
// failed.
TEST(Resting, StepAfterAFailedOneWithFewerBoxesHasAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 1000; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.boxes[999] = scene.boxes[5];
  scene.boxes[50] = scene.boxes[6];
  scene.step();
  scene.boxes.resize(100);
  const Boxes fewer = scene.boxes;
  for (std::size_t i = 90; i < 97; ++i) scene.boxes[i] = fewer[80];
  EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
  EXPECT_EQ(scene.finder.packed().resting, nullptr);
  scene.boxes = fewer;
  scene.boxes[60] = boxAt(19.5f, 0, 0, 1);
  EXPECT_LT(scene.step(), 100u);
}

TEST(Resting, AddedOrDroppedFiltersAreNoticedAfterAPause) {
  Random random(62);
  for (const bool filtered : {false, true}) {
    Watched scene(1);
    scene.boxes = test::boxSets()[0].make(200, random);
    const std::vector<Filter> some(200, Filter{1, 2}), none;
    scene.filters = filtered ? some : none;
    scene.step();
    for (Aabb& box : scene.boxes) box.max[0] += 0.1f;
    scene.step();
    scene.filters = filtered ? none : some;
    scene.step();  // compares nothing
    scene.filters = filtered ? some : none;
    for (std::size_t i = 0; i < 20; ++i) scene.boxes[i].max[1] += 0.3f;
    scene.step(true);
  }
}

// Boxes that are still as they were in the failed step have not been searched for.
TEST(Resting, StepAfterAFailedSearchOfAllHasAllPairs) {
  Watched scene(1, 20);
  for (int i = 0; i < 100; ++i) scene.boxes.push_back(boxAt(float(3 * i), 0, 0, 1));
  scene.step();
  const Boxes apart = scene.boxes;
  for (std::size_t i = 0; i < 50; ++i) scene.boxes[i] = apart[i / 2];
  EXPECT_THROW(scene.finder.update(view(scene.boxes)), std::length_error);
  for (std::size_t i = 40; i < 50; ++i) scene.boxes[i] = apart[i];
  EXPECT_EQ(scene.step(), 100u);
}

TEST(Resting, UnwrittenCopiesAreNotCompared) {
  Random random(60);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(50, random);
  scene.step(true);
  scene.boxes.assign(50, boxAt(0, 0, 0, 0));  // as memory that was never written
  scene.step();
}

TEST(Resting, CallersMayTellWhatChanged) {
  Random random(59);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(500, random);
  scene.filters.assign(500, Filter{1, -1});
  scene.step(true);
  std::size_t restingSteps = 0;
  bool told = true;
  for (int k = 0; k < 60; ++k) {
    for (int change = 0; change < 3; ++change) {
      const std::uint32_t i = random.below(500);
      scene.boxes[i].max[random.below(3)] += random.uniform(-0.1f, 0.2f);
      scene.filters[random.below(500)].mask = static_cast<std::int32_t>(random.bits());
    }
    if (k % 7 == 0) {
      scene.boxes.push_back(scene.boxes[random.below(500)]);
      scene.filters.push_back({1, -1});
    }
    // In some steps nothing is told; then there are no copies to compare with.
    const bool tells = random.below(5) != 0;
    const std::size_t searched = scene.step(tells);
    restingSteps += searched < scene.boxes.size();
    if (!tells && told) EXPECT_EQ(searched, scene.boxes.size());
    told = tells;
  }
  EXPECT_GE(restingSteps, 30u);
  const std::vector<std::uint64_t> tooFew(1);
  EXPECT_NE(scene.finder.packed().resting, nullptr);
  EXPECT_THROW(scene.finder.update(view(scene.boxes), view(scene.filters), view(tooFew)),
               std::invalid_argument);
  EXPECT_EQ(scene.finder.packed().resting, nullptr);
}

TEST(Resting, BuildTreeDoesNotChangeTheNextStep) {
  Random random(58);
  Watched scene(1);
  scene.boxes = test::boxSets()[0].make(500, random);
  scene.step();
  for (int k = 0; k < 5; ++k) {
    scene.finder.buildTree(view(scene.boxes));
    EXPECT_EQ(scene.finder.tree().nodes.size, 2 * 500u - 1);
    scene.boxes[random.below(500)].max[1] += 0.2f;
    EXPECT_LE(scene.step(), 5u);
  }
}

}  // namespace
}  // namespace lbvh
