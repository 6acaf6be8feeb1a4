// SPDX-License-Identifier: Zlib
// Tests steps on a GPU through the public interface. They must find the same pairs and deltas as
// the host, whatever fails on the GPU. Skipped if there is no device.
#include <gtest/gtest.h>

#include <algorithm>

#include "broadphase/pair_finder.h"
#include "cuda_fixture.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::toVector;
using test::view;

/// Runs with each hierarchy. The host's finder, which is the reference, always has the wide
/// hierarchy.
class Cuda : public test::OnCuda, public testing::WithParamInterface<Hierarchy> {
 protected:
  static PairFinder finderOn(Backend backend) {
    Options options;
    options.backend = backend;
    options.threads = 1;
    if (backend == Backend::cuda) options.hierarchy = GetParam();
    return PairFinder(options);
  }

  /// Runs the same update on both finders. All lists must agree.
  static void step(PairFinder& gpu, PairFinder& host, const Boxes& boxes,
                   const std::vector<Filter>& filters = {},
                   const std::vector<std::uint64_t>& changed = {}) {
    gpu.update(view(boxes), view(filters),
               changed.empty() ? View<const std::uint64_t>{} : view(changed));
    host.update(view(boxes), view(filters));
    ASSERT_EQ(toVector(gpu.added()), toVector(host.added()));
    ASSERT_EQ(toVector(gpu.removed()), toVector(host.removed()));
    ASSERT_EQ(toVector(gpu.pairs()), toVector(host.pairs()));
    EXPECT_EQ(gpu.stats().pairs, host.stats().pairs);
    EXPECT_EQ(gpu.stats().oversizedBoxes, host.stats().oversizedBoxes);
    EXPECT_EQ(gpu.stats().nanBoxes, host.stats().nanBoxes);
  }

  /// A finder on the GPU, or on the host if setting up the GPU fails.
  static PairFinder finderWhateverFails(Options options) {
    options.threads = 1;
    options.backend = Backend::cuda;
    options.hierarchy = GetParam();
    try {
      return PairFinder(options);
    } catch (const std::runtime_error&) {
      return finderOn(Backend::host);
    }
  }

  static void runSteps(const Options& options, int rounds) {
    Random random(86);
    PairFinder finder = finderWhateverFails(options), host = finderOn(Backend::host);
    Boxes boxes = test::boxSets()[0].make(150, random);
    std::vector<std::uint64_t> changed;  // empty in every third step
    for (int round = 0; round < rounds; ++round) {
      step(finder, host, boxes, {}, changed);
      changed.assign(round % 3 == 0 ? 0 : 3, 0);
      // 40 changes are sent as pieces, 10 as records.
      for (std::size_t i = 0; i < (round % 2 == 0 ? 40 : 10); ++i) {
        const std::size_t to = random.below(150);
        boxes[to] = boxes[i];
        if (!changed.empty()) changed[to / 64] |= std::uint64_t{1} << to % 64;
      }
      finder.replaceObject(7);
      host.replaceObject(7);
    }
  }
};

TEST_P(Cuda, AgreesWithTheHostAtEverySize) {
  Random random(81);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 12486u})
    step(gpu, host, test::boxSets()[0].make(n, random));
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

TEST_P(Cuda, AgreesWithTheHostOnEveryKindOfBoxes) {
  Random random(82);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  for (const test::BoxSet& set : test::boxSets()) {
    SCOPED_TRACE(set.name);
    for (const std::size_t n : {5u, 200u, 180u}) step(gpu, host, set.make(n, random));
  }
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

TEST_P(Cuda, FollowsFiltersMovesAndRemovedObjects) {
  Random random(83);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  Boxes boxes = test::boxSets()[0].make(400, random);
  std::vector<Filter> filters(boxes.size());
  for (int round = 0; round < 8; ++round) {
    const Boxes other = test::boxSets()[0].make(400, random);
    for (int change = 0; change < 60; ++change) {
      const std::size_t i = random.below(400);
      boxes[i] = other[i];
    }
    for (Filter& filter : filters) filter = {1 << random.below(3), static_cast<int>(random.bits())};
    for (int removals = round % 3; removals > 0; --removals) {
      const std::uint32_t i = random.below(400);
      gpu.replaceObject(i);
      host.replaceObject(i);
    }
    if (round % 2 == 0)
      step(gpu, host, boxes, filters);
    else
      step(gpu, host, boxes);
  }
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

/// Rows of unit boxes. Each row follows a long box that overlaps the whole row. So the list of the
/// long box is as long as the row.
Boxes rowsUnderLongBoxes(const std::vector<std::uint32_t>& lengths) {
  Boxes boxes;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    const float y = 10 * static_cast<float>(row), end = 3 * static_cast<float>(lengths[row]);
    boxes.push_back({{0, y, 0}, {end, y + 1, 1}});
    for (std::uint32_t i = 0; i < lengths[row]; ++i)
      boxes.push_back(
          {{3 * static_cast<float>(i), y, 0}, {3 * static_cast<float>(i) + 1, y + 1, 1}});
  }
  return boxes;
}

/// Moves some boxes out of their rows, or back.
void leaveOrReturn(Boxes& boxes, Random& random) {
  for (std::size_t change = 0; change < boxes.size() / 20; ++change) {
    Aabb& box = boxes[random.below(static_cast<std::uint32_t>(boxes.size()))];
    const float by = box.min[2] > 3 ? -5.0f : 5.0f;
    box.min[2] += by;
    box.max[2] += by;
  }
}

// Some lengths are the maximum that can be sorted in registers, by a warp, or in a block's memory.
// Others exceed a maximum by one. There are also hubs, and many short lists.
TEST_P(Cuda, ListsOfEveryLength) {
  Random random(88);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  std::vector<std::uint32_t> lengths = {8,   9,   16,   17,   32,   33,   64,  65,
                                        256, 257, 1023, 1024, 1025, 4096, 4097};
  for (int i = 0; i < 90; ++i) lengths.push_back(random.below(40));  // lists in one tile
  for (int i = 0; i < 8; ++i) lengths.insert(lengths.begin() + random.below(20), 0u);
  Boxes boxes = rowsUnderLongBoxes(lengths);
  for (int round = 0; round < 4; ++round) {
    step(gpu, host, boxes);
    leaveOrReturn(boxes, random);
    for (int removals = 3 * (round % 2); removals > 0; --removals) {
      const std::uint32_t i = random.below(static_cast<std::uint32_t>(boxes.size()));
      gpu.replaceObject(i);
      host.replaceObject(i);
    }
  }
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

// One hub has more partners than a window holds (65,536). The lists of one tile need several
// rounds.
TEST_P(Cuda, HubsAndCrowds) {
  Random random(89);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  Boxes boxes = rowsUnderLongBoxes({66000, 2, 10000});
  for (int i = 0; i < 150; ++i) boxes.push_back(test::boxAt(0, -20, 0, 1));
  for (int round = 0; round < 3; ++round) {
    step(gpu, host, boxes);
    for (Aabb& box : boxes)
      if (random.below(50) == 0) box.min[2] += 5, box.max[2] += 5;
    gpu.replaceObject(static_cast<std::uint32_t>(66003 * round));
    host.replaceObject(static_cast<std::uint32_t>(66003 * round));
  }
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

// 1,000 coincident boxes have 499,500 pairs, far more than the planned capacity.
TEST_P(Cuda, GrowsAndRunsAgainWithoutLosingAPair) {
  Random random(84);
  PairFinder gpu = finderOn(Backend::cuda), host = finderOn(Backend::host);
  step(gpu, host, test::boxSets()[0].make(1000, random));
  step(gpu, host, Boxes(1000, test::boxAt(0, 0, 0, 1)));
  step(gpu, host, test::boxSets()[0].make(1000, random));
  EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
}

TEST_P(Cuda, TooManyPairsIsTheSameErrorAsOnTheHost) {
  Options options;
  options.backend = Backend::cuda;
  options.maxPairs = 100;
  options.hierarchy = GetParam();
  PairFinder gpu(options);
  const Boxes few(5, test::boxAt(0, 0, 0, 1)), many(50, test::boxAt(0, 0, 0, 1));
  gpu.update(view(few));
  EXPECT_THROW(gpu.update(view(many)), std::length_error);
  EXPECT_EQ(gpu.pairs().size(), 10u);
  gpu.update(view(few));
  EXPECT_TRUE(gpu.added().empty());
  EXPECT_TRUE(gpu.removed().empty());
}

TEST_P(Cuda, TwoFindersAreIndependent) {
  Random random(85);
  PairFinder a = finderOn(Backend::cuda), b = finderOn(Backend::cuda);
  PairFinder hostA = finderOn(Backend::host), hostB = finderOn(Backend::host);
  for (int round = 0; round < 3; ++round) {
    step(a, hostA, test::boxSets()[0].make(100, random));
    step(b, hostB, test::boxSets()[1].make(70, random));
  }
}

// Runs enough steps of one kind for them to be recorded and replayed. Between the steps, everything
// changes that recordings must not depend on: the number of boxes, boxes far away, and removed
// objects. The number of pairs also rises and falls, so that the planned capacity for pairs
// sometimes changes without a new allocation.
TEST_P(Cuda, RepeatedStepsFollowEveryChange) {
  Random random(87);
  for (const bool timed : {false, true}) {
    Options options;
    options.backend = Backend::cuda;
    options.stageTimes = timed;
    options.hierarchy = GetParam();
    PairFinder gpu(options), host = finderOn(Backend::host);
    Boxes boxes = test::boxSets()[0].make(500, random);
    for (int round = 0; round < 28; ++round) {
      constexpr std::size_t kCrowds[] = {0, 120, 0, 80};
      const Boxes other = test::boxSets()[0].make(512, random);
      for (int change = 0; change < 50; ++change)
        boxes[random.below(400)] = other[random.below(512)];
      boxes.resize(480 + random.below(33), other[7]);
      if (round % 5 == 4) boxes[random.below(400)] = test::boxAt(1e12f, 0, 0, 1);
      std::fill_n(boxes.begin(), kCrowds[round / 7], test::boxAt(2, 2, 2, 1));
      if (round % 3 == 2) {
        gpu.replaceObject(33);
        host.replaceObject(33);
      }
      step(gpu, host, boxes);
      EXPECT_EQ(gpu.stats().traversalMs > 0, timed) << round;
    }
    EXPECT_NE(gpu.stats().backend, "host") << gpu.stats().reason;
  }
}

// With the interpreter's PTXVM_FAIL, one call of these steps fails. tests/cuda/cuda_faults.sh runs
// this test once per call. Some steps allocate, others are recorded or replayed. If setting up the
// GPU fails, the host runs the steps.
TEST_P(Cuda, StepsAreRightWhateverFails) { runSteps({}, 9); }

TEST_P(Cuda, StepsWithoutGraphsAreRightWhateverFails) {
  Options options;
  options.graphs = false;
  runSteps(options, 3);
}

INSTANTIATE_TEST_SUITE_P(Each, Cuda, testing::Values(Hierarchy::wide, Hierarchy::binary),
                         [](const auto& param) {
                           return param.param == Hierarchy::wide ? "wide" : "binary";
                         });

}  // namespace
}  // namespace lbvh
