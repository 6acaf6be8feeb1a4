// SPDX-License-Identifier: Zlib
// Tests the copy of the last step's boxes. When the GPU fails, the host finds the pairs of these
// copied boxes.
#include "broadphase/choose/last_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broadphase/core/changes.h"
#include "broadphase/host/parallel/tasks.h"
#include "support.h"

namespace lbvh {
namespace {

using test::Boxes;
using test::Random;
using test::view;

/// A scene that changes, and the bits that say what has changed since the last step that succeeded.
struct Changing {
  explicit Changing(std::uint32_t seed) : random(seed) {}

  void change() {
    if (random.below(6) == 0) resize(random.below(400));
    if (random.below(10) == 0) isFiltered = !isFiltered;
    for (std::uint32_t left = random.below(12); left > 0 && !boxes.empty(); --left) {
      const std::size_t i = random.below(static_cast<std::uint32_t>(boxes.size()));
      if (random.below(2) == 0)
        boxes[i].min[0] += 1;
      else
        filters[i].group = static_cast<int>(random.bits());
      mark(i);
    }
  }
  /// Boxes with greater indices than all boxes of the last step need no bits.
  void resize(std::size_t n) {
    const std::size_t before = boxes.size();
    boxes.resize(n, test::boxAt(1, 2, 3, 1));
    filters.resize(n);
    changed.resize(n / 64 + 1);  // sometimes one word more than needed
    for (std::size_t i = before; i < std::min(n, lastSize); ++i) mark(i);
  }
  void mark(std::size_t i) { changed[i / 64] |= std::uint64_t{1} << i % 64; }
  void succeed() {
    lastSize = boxes.size();
    for (std::uint64_t& word : changed) word = 0;
  }
  StepInput input(bool tells) const {
    StepInput made{view(boxes), isFiltered ? view(filters) : View<const Filter>{}, {}, 77};
    if (tells) made.changed = view(changed);
    return made;
  }

  Random random;
  Boxes boxes;
  std::vector<Filter> filters;
  std::vector<std::uint64_t> changed;
  bool isFiltered = false;
  std::size_t lastSize = 0;
};

template <class T>
void expectSame(View<const T> copy, View<const T> original) {
  ASSERT_EQ(copy.size(), original.size());
  for (std::size_t i = 0; i < copy.size(); ++i) ASSERT_FALSE(differ(copy[i], original[i])) << i;
}

void expectCopyOf(const LastScene& scene, const StepInput& input) {
  const StepInput copy = scene.get();
  ASSERT_NO_FATAL_FAILURE(expectSame(copy.boxes, input.boxes));
  ASSERT_NO_FATAL_FAILURE(expectSame(copy.filters, input.filters));
  EXPECT_EQ(copy.maxPairs, input.maxPairs);
  EXPECT_TRUE(copy.removedObjects.empty());
  EXPECT_EQ(copy.changed.data(), nullptr);
}

// The number of boxes changes, and only some steps get filters or change bits. About every third
// step fails, and its bits remain set for the next step.
TEST(LastScene, IsThatOfTheLastStepThatSucceeded) {
  Changing scene(401);
  LastScene copies;
  Changing last = scene;
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(round);
    scene.change();
    const StepInput input = scene.input(scene.random.below(5) != 0);
    if (scene.random.below(20) == 0) static_cast<void>(copies.prepare(input));  // a failed step
    copies.prepare(input).help();
    if (scene.random.below(3) == 0) {
      if (round > 0) {
        ASSERT_NO_FATAL_FAILURE(expectCopyOf(copies, last.input(false)));
      }
      continue;
    }
    copies.keep();
    last = scene;
    ASSERT_NO_FATAL_FAILURE(expectCopyOf(copies, last.input(false)));
    scene.succeed();
  }
}

// Two copies are written alternately, so a change is copied in its step and in the next step. Boxes
// without a bit are not read.
TEST(LastScene, CopiesOnlyBoxesThatHaveChanged) {
  Boxes boxes(300, test::boxAt(0, 0, 0, 1));
  std::vector<std::uint64_t> changed(5, 0);
  StepInput input{view(boxes), {}, {}, 1};
  LastScene copies;
  const auto step = [&] {
    copies.prepare(input).help();
    copies.keep();
  };
  input.changed = view(changed);
  for (int i = 0; i < 3; ++i) step();
  boxes[100].min[0] = boxes[200].min[0] = -7;
  changed[100 / 64] = std::uint64_t{1} << 100 % 64;
  for (int i = 0; i < 2; ++i) {
    step();
    EXPECT_EQ(copies.get().boxes[100].min[0], -7);
    EXPECT_NE(copies.get().boxes[200].min[0], -7);
    changed[100 / 64] = 0;
  }
}

TEST(LastScene, SeveralThreadsCopyManyBoxes) {
  Changing scene(403);
  LastScene copies;
  HostTasks tasks(3);
  for (const std::size_t n : {40000u, 40000u, 40001u, 25000u, 25000u, 63u}) {
    scene.resize(n);
    for (std::size_t i = 0; i < n; i += 1 + scene.random.below(200)) {
      scene.boxes[i].min[0] += 1;
      scene.mark(i);
    }
    const StepInput input = scene.input(true);
    LastScene::Copying copying = copies.prepare(input);
    EXPECT_EQ(copying.remaining(), (n + 4095) / 4096);
    tasks.forParts(3, 3, [&](std::size_t, std::size_t, std::size_t) { copying.help(); });
    EXPECT_EQ(copying.remaining(), 0u);
    copies.keep();
    ASSERT_NO_FATAL_FAILURE(expectCopyOf(copies, input));
    scene.succeed();
    scene.isFiltered = !scene.isFiltered;
  }
}

TEST(LastScene, ClearFreesItsMemory) {
  Changing scene(402);
  scene.resize(500);
  LastScene copies;
  EXPECT_EQ(copies.memoryBytes(), 0u);
  static_cast<void>(copies.prepare(scene.input(true)));
  EXPECT_GE(copies.memoryBytes(), 500 * sizeof(Aabb));
  copies.clear();
  EXPECT_EQ(copies.memoryBytes(), 0u);
}

}  // namespace
}  // namespace lbvh
