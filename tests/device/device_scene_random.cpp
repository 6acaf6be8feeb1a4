// SPDX-License-Identifier: Zlib
// Makes random scenes and queries. Coordinates are multiples of 1/4, so that boxes often touch, and
// rays often hit boxes at the same distance.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device_scene_model.h"

namespace lbvh::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool isOneIn(std::uint32_t n, Random& random) { return random.below(n) == 0; }

float quarters(std::uint32_t below, Random& random) {
  return 0.25f * static_cast<float>(random.below(below));
}

template <class T, class Make>
std::vector<T> some(std::size_t n, const Make& make) {
  std::vector<T> list(n);
  for (T& element : list) element = make();
  return list;
}

/// Boxes on a grid, with about eight neighbours each.
Boxes onGrid(std::size_t n, Random& random) {
  const auto side = 2 + static_cast<std::uint32_t>(1.5f * std::cbrt(static_cast<float>(n)));
  return some<Aabb>(n, [&] {
    Aabb box;
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = static_cast<float>(random.below(side));
      box.max[axis] = box.min[axis] + quarters(7, random);
    }
    return box;
  });
}

Boxes anyBoxes(std::size_t n, Random& random) {
  if (!isOneIn(3, random)) return onGrid(n, random);
  if (n > 40) return boxSets()[random.below(2)].make(n, random);  // other sets have too many pairs
  return boxSets()[random.below(static_cast<std::uint32_t>(boxSets().size()))].make(n, random);
}

/// Adds planes, boxes around everything, an inverted box, and coincident boxes.
void addOddBoxes(Boxes& boxes, Random& random) {
  if (boxes.empty()) return;
  const auto any = [&]() -> Aabb& {
    return boxes[random.below(static_cast<std::uint32_t>(boxes.size()))];
  };
  if (isOneIn(2, random)) any() = {{-kInfinity, -1, -kInfinity}, {kInfinity, 0, kInfinity}};
  if (isOneIn(3, random)) any() = {{-1e18f, 1, -1e18f}, {1e18f, 1.5f, 1e18f}};
  if (isOneIn(4, random)) any() = {{-3e38f, -3e38f, 0}, {3e38f, 3e38f, 1}};
  if (isOneIn(3, random)) {
    Aabb& box = any();
    std::swap(box.min[0], box.max[0]);
  }
  const Aabb twin = any();
  for (std::uint32_t twins = random.below(4); twins > 0; --twins) any() = twin;
}

float anyMargin(Random& random) {
  if (isOneIn(20, random)) return -2;
  return quarters(4, random) - 0.25f;
}

Way anyWay(Random& random) {
  Way way;
  for (float& by : way.by) by = isOneIn(2, random) ? 0 : quarters(9, random) - 1;
  if (isOneIn(10, random)) way.by[random.below(3)] = -0.0f;
  return way;
}

Filter anyFilter(Random& random) {
  return {1 << random.below(3), isOneIn(2, random) ? -1 : static_cast<int>(random.bits())};
}

/// The index of a random world. World 1 stays empty if there are three or more worlds.
std::uint32_t anyWorld(std::uint32_t worldCount, Random& random) {
  if (isOneIn(10, random)) return kAllWorlds;
  const std::uint32_t world = random.below(worldCount);
  return world == 1 && worldCount > 2 ? 0 : world;
}

void addOptionalArrays(SceneModel& scene, Random& random) {
  const std::size_t n = scene.boxes.size();
  const auto several = 1 + static_cast<std::uint32_t>(n / 3);
  if (isOneIn(2, random)) scene.margins = some<float>(n, [&] { return anyMargin(random); });
  if (isOneIn(3, random)) scene.displacements = some<Way>(n, [&] { return anyWay(random); });
  if (isOneIn(2, random)) scene.filters = some<Filter>(n, [&] { return anyFilter(random); });
  if (isOneIn(2, random))
    scene.bodies = some<std::uint32_t>(
        n, [&] { return isOneIn(5, random) ? kNoBody : random.below(several); });
  if (isOneIn(2, random))
    scene.movable = some<std::uint8_t>(n, [&] {
      return static_cast<std::uint8_t>(isOneIn(3, random) ? 0 : 1 + random.below(255));
    });
  if (!isOneIn(3, random)) {
    constexpr std::uint32_t kCounts[] = {1, 2, 7, 300};
    scene.worldCount = kCounts[random.below(4)];
    scene.worlds = some<std::uint32_t>(n, [&] { return anyWorld(scene.worldCount, random); });
  }
}

/// Excludes about half of the scene's pairs, some of them twice. Also excludes some pairs that the
/// scene does not have.
void exclude(SceneModel& scene, Random& random) {
  const auto n = static_cast<std::uint32_t>(scene.boxes.size());
  constexpr std::size_t kTimes[] = {0, 0, 1, 2};
  for (const Pair pair : answerOf(scene).pairs)
    scene.excluded.insert(scene.excluded.end(), kTimes[random.below(4)], pair);
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t box = random.below(n);
    // The second box may be beyond the scene's last box.
    scene.excluded.push_back({box, box + 1 + random.below(9)});
  }
  std::sort(scene.excluded.begin(), scene.excluded.end());
}

/// Sets `count` to a random number of boxes. The boxes beyond this number may become invalid.
void count(SceneModel& scene, Random& random) {
  const auto n = static_cast<std::uint32_t>(scene.boxes.size());
  scene.count = {isOneIn(4, random) ? n : n - random.below(std::min(n, 8u))};
  if (isOneIn(9, random)) scene.count[0] = 0;
  for (std::size_t i = scene.count[0]; i < n; ++i) {
    if (isOneIn(2, random)) scene.boxes[i].min[1] = kNan;
    if (!scene.worlds.empty() && isOneIn(2, random)) scene.worlds[i] = scene.worldCount + 3;
  }
}

}  // namespace

SceneModel randomScene(std::size_t n, Random& random) {
  SceneModel scene;
  scene.boxes = anyBoxes(n, random);
  addOddBoxes(scene.boxes, random);
  scene.isPacked = isOneIn(3, random);
  scene.lowerStep = 3 + random.below(3);
  scene.upperStep = 3 + random.below(3);
  scene.wayStep = 3 + random.below(3);
  addOptionalArrays(scene, random);
  if (n > 0 && isOneIn(2, random)) exclude(scene, random);
  if (n > 0 && isOneIn(2, random)) count(scene, random);
  return scene;
}

SceneModel spoiltScene(std::size_t n, Random& random) {
  SceneModel scene = randomScene(n, random);
  if (n == 0) return scene;
  const auto any = [&] { return random.below(static_cast<std::uint32_t>(n)); };
  if (isOneIn(3, random)) scene.boxes[any()].min[random.below(3)] = kNan;
  if (isOneIn(3, random)) scene.boxes[any()].max[random.below(3)] = kNan;
  if (!scene.margins.empty() && isOneIn(2, random)) scene.margins[any()] = kNan;
  if (!scene.margins.empty() && isOneIn(4, random)) scene.margins[any()] = kInfinity;
  if (!scene.displacements.empty() && isOneIn(2, random))
    scene.displacements[any()].by[random.below(3)] = kNan;
  if (!scene.worlds.empty() && isOneIn(2, random))
    scene.worlds[any()] = isOneIn(2, random) ? scene.worldCount : kAllWorlds - 1;
  if (!scene.count.empty() && isOneIn(3, random))
    scene.count[0] = isOneIn(2, random) ? static_cast<std::uint32_t>(n + 1) : kNullIndex;
  return scene;
}

SceneModel steadyScene(std::size_t n, std::uint32_t worldCount, Random& random) {
  SceneModel scene;
  scene.boxes = onGrid(n / 2, random);  // on a small grid, so that all boxes have neighbours
  const Boxes others = onGrid(n - n / 2, random);
  scene.boxes.insert(scene.boxes.end(), others.begin(), others.end());
  scene.count = {static_cast<std::uint32_t>(n) - random.below(static_cast<std::uint32_t>(n / 2))};
  scene.worldCount = worldCount;
  scene.worlds = some<std::uint32_t>(n, [&] { return anyWorld(worldCount, random); });
  scene.filters = some<Filter>(n, [&] { return anyFilter(random); });
  return scene;
}

std::vector<Ray> randomRays(std::size_t n, Random& random) {
  return some<Ray>(n, [&] {
    Ray ray;
    for (float& x : ray.origin) x = quarters(48, random) - 2;
    for (float& x : ray.direction) x = quarters(9, random) - 1;
    if (isOneIn(2, random)) ray.direction[random.below(3)] = isOneIn(2, random) ? 0.0f : -0.0f;
    if (isOneIn(6, random)) ray.direction[random.below(3)] = 1e-42f;
    if (isOneIn(8, random)) ray = {{-50, 1, 1}, {1, 0, 0}, kInfinity};
    ray.length = isOneIn(3, random) ? kInfinity : quarters(40, random);
    if (isOneIn(15, random)) ray.length = -1;
    if (isOneIn(15, random)) ray.length = kNan;
    if (isOneIn(15, random)) ray.origin[random.below(3)] = kNan;
    if (isOneIn(15, random)) ray.direction[random.below(3)] = kNan;
    return ray;
  });
}

Boxes randomQueries(std::size_t n, Random& random) {
  Boxes queries = onGrid(n, random);
  for (Aabb& query : queries) {
    if (isOneIn(9, random)) query = {{-kInfinity, 0, -kInfinity}, {kInfinity, 1, kInfinity}};
    if (isOneIn(9, random)) std::swap(query.min[1], query.max[1]);
    if (isOneIn(9, random)) query.max[random.below(3)] = kNan;
  }
  return queries;
}

Indices randomWorlds(std::size_t n, const SceneModel& scene, bool mayBeUnknown, Random& random) {
  return some<std::uint32_t>(n, [&] {
    if (mayBeUnknown && isOneIn(5, random)) return scene.worldCount + random.below(2);
    if (isOneIn(4, random)) return kAllWorlds;
    if (scene.worldCount == 0) return scene.worlds.empty() ? 0 : kAllWorlds;
    return random.below(scene.worldCount);
  });
}

}  // namespace lbvh::test
