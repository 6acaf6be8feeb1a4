// SPDX-License-Identifier: Zlib
// Tests the whole core through its public interface. Pairs are exact for every kind of box set.
// Their order is the same for every thread count and run. Also tests deltas, limits and errors.
#include "broadphase/pair_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "broadphase/device_pair_finder.h"
#include "broadphase/host/parallel/space.h"
#include "failing_new.h"
#include "portable.h"
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

constexpr Hierarchy kHierarchies[] = {Hierarchy::wide, Hierarchy::binary};

Options withThreads(int threads, Hierarchy hierarchy = Hierarchy::wide) {
  Options options;
  options.threads = threads;
  options.hierarchy = hierarchy;
  return options;
}

/// All kinds of boxes, with each hierarchy.
class EverySet : public testing::TestWithParam<std::tuple<test::BoxSet, Hierarchy>> {
 protected:
  static Boxes make(std::size_t n, Random& random) {
    return std::get<test::BoxSet>(GetParam()).make(n, random);
  }
  static PairFinder finderWith(int threads) {
    return PairFinder(withThreads(threads, std::get<Hierarchy>(GetParam())));
  }
};

class EveryHierarchy : public testing::TestWithParam<Hierarchy> {};

TEST_P(EverySet, EqualsBruteForceAtEverySize) {
  Random random(11);
  PairFinder finder = finderWith(1), finder3 = finderWith(3);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 8u, 31u, 32u, 33u, 100u, 500u}) {
    const Boxes boxes = make(n, random);
    const Pairs expected = bruteForce(boxes);
    finder.update(view(boxes));
    ASSERT_EQ(toVector(finder.pairs()), expected) << n;
    EXPECT_EQ(finder.stats().objects, n);
    EXPECT_EQ(finder.stats().pairs, expected.size());
    finder3.update(view(boxes));
    ASSERT_EQ(toVector(finder3.pairs()), expected) << n << " on three threads";
  }
}

TEST_P(EverySet, EqualsBruteForceWithFilters) {
  Random random(12);
  PairFinder finder = finderWith(0);
  for (int round = 0; round < 10; ++round) {
    const Boxes boxes = make(200, random);
    std::vector<Filter> filters(boxes.size());
    for (Filter& filter : filters) filter = {1 << random.below(3), static_cast<int>(random.bits())};
    finder.update(view(boxes), view(filters));
    ASSERT_EQ(toVector(finder.pairs()), bruteForce(boxes, filters));
  }
}

// Boxes move, appear and vanish. Each delta must turn the previous pairs into the current ones.
TEST_P(EverySet, DeltaIsTheSetDifference) {
  Random random(13);
  PairFinder finder = finderWith(2);
  Boxes boxes = make(300, random);
  Pairs before;
  for (int step = 0; step < 12; ++step) {
    const Boxes other = make(300, random);
    for (int change = 0; change < 40; ++change) {
      const std::size_t i = random.below(300);
      if (i < boxes.size()) boxes[i] = other[i];
    }
    if (step == 5) boxes.resize(100);
    if (step == 8) boxes = other;
    finder.update(view(boxes));
    const Pairs after = bruteForce(boxes);
    Pairs added, removed;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(added));
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(removed));
    ASSERT_EQ(toVector(finder.added()), added) << step;
    ASSERT_EQ(toVector(finder.removed()), removed) << step;
    before = after;
  }
}

std::string nameOf(Hierarchy hierarchy) { return hierarchy == Hierarchy::wide ? "wide" : "binary"; }

INSTANTIATE_TEST_SUITE_P(PairFinder, EverySet,
                         testing::Combine(testing::ValuesIn(test::boxSets()),
                                          testing::ValuesIn(kHierarchies)),
                         [](const auto& param) {
                           return std::get<test::BoxSet>(param.param).name +
                                  ("_" + nameOf(std::get<Hierarchy>(param.param)));
                         });
INSTANTIATE_TEST_SUITE_P(PairFinder, EveryHierarchy, testing::ValuesIn(kHierarchies),
                         [](const auto& param) { return nameOf(param.param); });

TEST(DevicePairFinder, SaysWhyItIsUnavailable) {
  const std::string why = whyUnavailable(Backend::cuda);
  if (why.empty()) GTEST_SKIP() << "this machine has a GPU";
  try {
    DevicePairFinder finder;
    ADD_FAILURE() << "a finder without a GPU";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), why);
  }
}

TEST_P(EveryHierarchy, SameOrderForEveryThreadCountAndRun) {
  Random random(14);
  const Boxes first = test::boxSets()[0].make(20000, random);
  const Boxes second = test::boxSets()[0].make(20000, random);
  Pairs pairs, added, removed;
  for (int run = 0; run < 10; ++run) {
    PairFinder finder(withThreads(run == 0 ? 1 : 1 << run % 3, GetParam()));
    finder.update(view(first));
    finder.update(view(second));
    if (run == 0) {
      pairs = toVector(finder.pairs());
      added = toVector(finder.added());
      removed = toVector(finder.removed());
      ASSERT_GT(pairs.size(), 90000u);
      ASSERT_GT(removed.size(), 80000u);
    }
    ASSERT_TRUE(toVector(finder.pairs()) == pairs) << "run " << run;
    ASSERT_TRUE(toVector(finder.added()) == added) << "run " << run;
    ASSERT_TRUE(toVector(finder.removed()) == removed) << "run " << run;
  }
}

TEST_P(EveryHierarchy, GrowsWithoutLosingAPair) {
  // 2,000 coincident boxes have 1,999,000 pairs, far beyond the first buffer.
  Random random(15);
  Boxes boxes = test::boxSets()[0].make(2000, random);
  PairFinder finder(withThreads(0, GetParam()));
  finder.update(view(boxes));
  boxes.assign(2000, boxAt(0, 0, 0, 1));
  finder.update(view(boxes));
  EXPECT_EQ(finder.pairs().size(), 1999000u);
  EXPECT_TRUE(toVector(finder.pairs()) == bruteForce(boxes));
  EXPECT_GE(finder.stats().capacity, 1999000u);
}

TEST_P(EveryHierarchy, TooManyPairsIsAnErrorThatKeepsTheLastResult) {
  Options options;
  options.maxPairs = 1000;
  options.hierarchy = GetParam();
  PairFinder finder(options);
  Boxes boxes(20, boxAt(0, 0, 0, 1));
  finder.update(view(boxes));
  const Pairs before = toVector(finder.pairs());
  const Boxes million(1000000, boxAt(0, 0, 0, 1));
  EXPECT_THROW(finder.update(view(million)), std::length_error);
  EXPECT_EQ(toVector(finder.pairs()), before);
  EXPECT_TRUE(finder.added().empty());
  EXPECT_TRUE(finder.removed().empty());
  boxes.resize(10);
  finder.update(view(boxes));
  EXPECT_EQ(toVector(finder.pairs()), bruteForce(boxes));
  EXPECT_EQ(finder.removed().size(), 190u - 45u);
}

TEST_P(EveryHierarchy, PairsOfARemovedObjectAreNeitherKeptNorReportedRemoved) {
  const Boxes boxes{boxAt(0, 0, 0, 1), boxAt(1, 0, 0, 1), boxAt(2, 0, 0, 1), boxAt(50, 0, 0, 1)};
  PairFinder finder(withThreads(0, GetParam()));
  finder.update(view(boxes));
  ASSERT_EQ(toVector(finder.pairs()), (Pairs{{0, 1}, {0, 2}, {1, 2}}));
  finder.replaceObject(1);
  finder.replaceObject(99);
  finder.update(view(boxes));
  EXPECT_EQ(toVector(finder.added()), (Pairs{{0, 1}, {1, 2}})) << "pairs of the new object";
  EXPECT_TRUE(finder.removed().empty());
  Boxes moved = boxes;
  moved[0] = boxAt(-50, 0, 0, 1);
  finder.replaceObject(0);
  finder.update(view(moved));
  EXPECT_TRUE(finder.added().empty());
  EXPECT_TRUE(finder.removed().empty()) << "its old pairs do not count as removed";
  EXPECT_EQ(toVector(finder.pairs()), (Pairs{{1, 2}}));
}

/// A finder, and a model of its pairs.
class Followed {
 public:
  explicit Followed(Hierarchy hierarchy) : finder_(withThreads(2, hierarchy)) {}
  PairFinder& finder() { return finder_; }

  void replace(std::uint32_t index) {
    finder_.replaceObject(index);
    const auto involves = [index](Pair pair) {
      return pair.first == index || pair.second == index;
    };
    pairs_.erase(std::remove_if(pairs_.begin(), pairs_.end(), involves), pairs_.end());
  }

  void update(const Boxes& boxes) {
    finder_.update(view(boxes));
    const Pairs now = bruteForce(boxes), before = std::exchange(pairs_, now);
    EXPECT_EQ(toVector(finder_.added()), difference(now, before));
    EXPECT_EQ(toVector(finder_.removed()), difference(before, now));
    EXPECT_EQ(toVector(finder_.pairs()), now);
  }

  /// Updates with a limited number of allocations. @return whether one failed
  bool updateWith(long allocations, const Boxes& boxes) {
    bool isDone = false;
    try {
      failing_new::callWith(allocations, [&] { finder_.update(view(boxes)), isDone = true; });
    } catch (const std::bad_alloc&) {
    }
    const bool hasFailed = failing_new::hasFailed;
    EXPECT_EQ(toVector(finder_.pairs()), isDone ? bruteForce(boxes) : pairs_);
    if (isDone) pairs_ = bruteForce(boxes);
    return hasFailed;
  }

 private:
  static Pairs difference(const Pairs& a, const Pairs& b) {
    Pairs left;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(left));
    return left;
  }

  PairFinder finder_;
  Pairs pairs_;
};

TEST_P(EveryHierarchy, MemoryOfFormerBoxesIsFreed) {
  Random random(18);
  Followed followed(GetParam());
  for (const std::size_t size : {6000, 300, 300, 300, 5000, 0, 0, 4000, 40, 40, 6000, 20, 30}) {
    SCOPED_TRACE(size);
    for (int k = 0; k < 3; ++k) followed.replace(random.below(60));
    followed.update(test::boxSets()[0].make(size, random));
  }
  const Boxes boxes = test::boxSets()[0].make(30, random);
  PairFinder fresh(withThreads(2, GetParam()));
  for (int step = 0; step < 3; ++step) followed.update(boxes), fresh.update(view(boxes));
  EXPECT_LE(followed.finder().stats().memoryBytes, fresh.stats().memoryBytes * 6 / 5);
}

TEST_P(EveryHierarchy, FreesMemoryOrKeepsItsState) {
  Random random(19);
  const Boxes many = test::boxSets()[0].make(1000, random), few(many.begin(), many.begin() + 50);
  bool hasFailed = true;
  long allocations = 0;
  for (; hasFailed; ++allocations) {
    SCOPED_TRACE(allocations);
    Followed followed(GetParam());
    followed.update(many);
    followed.update(few);
    hasFailed = followed.updateWith(allocations, few);
    followed.update(few);
    followed.update(many);
  }
  EXPECT_GE(allocations, 10) << "no pipeline was made";
}

TEST_P(EveryHierarchy, UpdateWithoutChangesKeepsThePairsAndTheirFigures) {
  Boxes boxes(300, boxAt(0, 0, 0, 1));
  boxes.push_back(boxAt(0, 0, 0, 1e18f));
  boxes.push_back(boxAt(NAN, 0, 0, 1));
  PairFinder finder(withThreads(0, GetParam()));
  finder.update(view(boxes));
  const Stats before = finder.stats();
  const Pairs pairs = toVector(finder.pairs());
  ASSERT_EQ(before.added, pairs.size());
  finder.updateUnchanged();
  const Stats& after = finder.stats();
  EXPECT_EQ(toVector(finder.pairs()), pairs);
  EXPECT_TRUE(finder.added().empty());
  EXPECT_TRUE(finder.removed().empty());
  EXPECT_EQ(after.objects, 302u);
  EXPECT_EQ(after.pairs, 45150u);
  EXPECT_EQ(after.oversizedBoxes, 1u);
  EXPECT_EQ(after.nanBoxes, 1u);
  EXPECT_EQ(after.mortonBits, before.mortonBits);
  EXPECT_NE(after.mortonBits, 0);
  EXPECT_EQ(after.capacity, before.capacity);
  EXPECT_EQ(after.memoryBytes, before.memoryBytes);
  EXPECT_EQ(after.added + after.removed + after.searched, 0u);
  EXPECT_EQ(after.totalMs, 0);
}

TEST_P(EveryHierarchy, CountsOversizedAndNanBoxes) {
  Random random(16);
  const Boxes boxes{
      boxAt(0, 0, 0, 1), boxAt(0, 0, 0, 1e18f), {{1, 1, 1}, {0, 2, 2}}, {{NAN, 0, 0}, {1, 1, 1}}};
  PairFinder finder(withThreads(0, GetParam()));
  finder.update(view(boxes));
  EXPECT_EQ(finder.stats().oversizedBoxes, 1u) << "inverted boxes are ordinary";
  EXPECT_EQ(finder.stats().nanBoxes, 1u);
}

// Tests sets of up to 257 boxes, of all kinds. More than 256 boxes are sorted.
TEST(PairFinder, FewBoxesAreSearchedInTheOrderOfTheirIndices) {
  Random random(29);
  for (const std::size_t n : {1u, 15u, 16u, 17u, 33u, 255u, 256u, 257u})
    for (const test::BoxSet& set : test::boxSets()) {
      SCOPED_TRACE(testing::Message() << set.name << ' ' << n);
      const Boxes boxes = set.make(n, random);
      PairFinder finder;
      finder.update(view(boxes));
      EXPECT_EQ(finder.stats().mortonBits == 0, n <= 256);
      EXPECT_EQ(toVector(finder.pairs()), bruteForce(boxes));
    }
}

TEST_P(EveryHierarchy, LongCodesAreExactToo) {
  Random random(17);
  for (const auto& [width, bits] : {std::pair{1e3f, 30}, {1e5f, 42}, {1e6f, 63}}) {
    Boxes boxes;
    for (int i = 0; i < 3000; ++i)
      boxes.push_back(
          boxAt(random.uniform(0, width), random.uniform(0, 10), random.uniform(0, 10), 4));
    boxes[7].max[0] = INFINITY;
    boxes[2000].min[1] = NAN;
    PairFinder finder(withThreads(0, GetParam()));
    finder.update(view(boxes));
    EXPECT_EQ(finder.stats().mortonBits, bits);
    EXPECT_EQ(toVector(finder.pairs()), bruteForce(boxes));
  }
}

TEST(PairFinder, RefusesBadArguments) {
  EXPECT_THROW(PairFinder(withThreads(-1)), std::invalid_argument);
  const Boxes boxes(3, boxAt(0, 0, 0, 1));
  const std::vector<Filter> filters(2, Filter{1, 1});
  PairFinder finder;
  finder.update(view(boxes));
  ASSERT_EQ(finder.added().size(), 3u);
  EXPECT_THROW(finder.update(view(boxes), view(filters)), std::invalid_argument);
  EXPECT_EQ(finder.pairs().size(), 3u);
  EXPECT_TRUE(finder.added().empty());
  Options cuda;
  cuda.backend = Backend::cuda;
  if (!whyUnavailable(Backend::cuda).empty()) EXPECT_THROW(PairFinder{cuda}, std::runtime_error);
  EXPECT_EQ(whyUnavailable(Backend::host), "");
}

TEST(PairFinder, UsesAtMost64ThreadsOrOnePerCore) {
  const int most = std::max(64, PairFinder().stats().threads);
  for (const auto& [asked, used] : {std::pair{3, 3}, {64, 64}, {2147483647, most}}) {
    const Options options = withThreads(asked);
    PairFinder finder(options);
    EXPECT_EQ(finder.stats().threads, used);
    DeviceOptions device;
    device.memory = MemorySpace::host;
    device.threads = asked;
    EXPECT_NO_THROW(DevicePairFinder{device});
  }
}

TEST_P(EveryHierarchy, IsReportedByStats) {
  EXPECT_EQ(PairFinder(withThreads(1, GetParam())).stats().hierarchy, GetParam());
}

TEST(PairFinder, SaysWhichBackendAndWhy) {
  Options options;
  options.backend = Backend::host;
  options.threads = 2;
  PairFinder finder(options);
  EXPECT_EQ(finder.stats().backend, "host");
  EXPECT_EQ(finder.stats().threads, 2);
  EXPECT_EQ(finder.stats().reason, "requested");
  EXPECT_EQ(finder.stats().spaceReason, SpaceReason::requested);
  if (!whyUnavailable(Backend::cuda).empty())
    EXPECT_EQ(PairFinder().stats().spaceReason, SpaceReason::unavailable);
  EXPECT_GT(PairFinder().stats().threads, 0);
  EXPECT_NE(PairFinder().stats().reason, "");
}

template <class F>
std::string messageOf(const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(PairFinder, MessagesHaveTheValueThatWasWrong) {
  const Boxes boxes(200, boxAt(0, 0, 0, 1));
  const std::vector<Filter> filters(5, Filter{1, 1});
  const std::vector<std::uint64_t> changed(3);
  PairFinder finder;
  EXPECT_EQ(messageOf([&] { finder.update(view(boxes), view(filters)); }),
            "5 filters for 200 boxes");
  EXPECT_EQ(messageOf([&] { finder.update(view(boxes), {}, view(changed)); }),
            "`changed` has 3 words, but 200 boxes need 4");
  EXPECT_EQ(messageOf([&] {
              finder.update({boxes.data(), (1u << 30) + 1u});
            }),
            "1073741825 boxes, at most 2^30 are possible");
  EXPECT_EQ(messageOf([] { PairFinder{withThreads(-7)}; }),
            "Options::threads is -7, but must be 0 or more");
}

TEST(PairFinder, TryUpdateSaysWhyNot) {
  const Boxes boxes(200, boxAt(0, 0, 0, 1));
  const std::vector<Filter> filters(5, Filter{1, 1});
  Options options = withThreads(1);
  options.maxPairs = 30;
  PairFinder finder(options);
  EXPECT_EQ(finder.tryUpdate({boxes.data(), 8}), UpdateStatus::done);
  EXPECT_EQ(finder.added().size(), 28u);
  EXPECT_EQ(finder.tryUpdate(view(boxes), view(filters)), UpdateStatus::invalidArguments);
  EXPECT_EQ(finder.tryUpdate(view(boxes)), UpdateStatus::tooManyPairs);
  EXPECT_EQ(finder.pairs().size(), 28u);
  EXPECT_TRUE(finder.added().empty());
  EXPECT_EQ(finder.tryUpdate({boxes.data(), 4}), UpdateStatus::done);
  EXPECT_EQ(finder.removed().size(), 22u);
}

TEST(PairFinder, InstancesAreIndependent) {
  Random random(18);
  const Boxes a = test::boxSets()[0].make(300, random), b = test::boxSets()[1].make(200, random);
  PairFinder first, second;
  first.update(view(a));
  second.update(view(b));
  EXPECT_EQ(toVector(first.pairs()), bruteForce(a));
  EXPECT_EQ(toVector(second.pairs()), bruteForce(b));
  PairFinder moved = std::move(first);
  EXPECT_EQ(toVector(moved.pairs()), bruteForce(a));
}

}  // namespace
}  // namespace lbvh
