// SPDX-License-Identifier: Zlib
// Computes expected results. Uses only overlap(), shouldCollide() and RayTest of the library.
#include "device_scene_model.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace lbvh::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// An array with three floats for each box. NaNs fill the gaps between boxes, and nothing follows
/// the last box.
template <class At>
std::vector<float> strided(std::size_t n, std::size_t step, const At& at) {
  std::vector<float> floats(n == 0 ? 0 : (n - 1) * step + 3, kNan);
  for (std::size_t i = 0; i < n; ++i)
    std::copy_n(at(i), 3, floats.begin() + static_cast<std::ptrdiff_t>(i * step));
  return floats;
}

bool hasNan(const Aabb& box) {
  return std::any_of(box.min, box.min + 3, [](float x) { return x != x; }) ||
         std::any_of(box.max, box.max + 3, [](float x) { return x != x; });
}

/// The boxes with their displacements and margins. Boxes that cannot overlap anything get NaN
/// corners.
Boxes grownBoxes(const SceneModel& scene) {
  const Aabb nothing{{kNan, kNan, kNan}, {kNan, kNan, kNan}};
  Boxes boxes(scene.boxes.size(), nothing);
  for (std::size_t i = 0; i < scene.counted(); ++i)
    if (scene.hasWorld(i) && !hasNan(scene.grown(i))) boxes[i] = scene.grown(i);
  return boxes;
}

bool areTogether(const SceneModel& scene, Pair pair) {
  if (scene.worlds.empty()) return true;
  const std::uint32_t a = scene.worlds[pair.first], b = scene.worlds[pair.second];
  return a == b || a == kAllWorlds || b == kAllWorlds;
}

bool mayCollide(const SceneModel& scene, Pair pair) {
  const auto [a, b] = pair;
  if (!scene.filters.empty() && !shouldCollide(scene.filters[a], scene.filters[b])) return false;
  if (!scene.bodies.empty() && scene.bodies[a] != kNoBody && scene.bodies[a] == scene.bodies[b])
    return false;
  if (!scene.movable.empty() && scene.movable[a] == 0 && scene.movable[b] == 0) return false;
  return std::find(scene.excluded.begin(), scene.excluded.end(), pair) == scene.excluded.end();
}

std::size_t worldOf(const SceneModel& scene, Pair pair) {
  if (scene.worlds.empty()) return 0;
  const std::uint32_t world = std::min(scene.worlds[pair.first], scene.worlds[pair.second]);
  return world == kAllWorlds ? scene.worldCount : world;
}

std::uint32_t errorsOf(const SceneModel& scene) {
  std::uint32_t errors = 0;
  if (!scene.count.empty() && scene.count[0] > scene.boxes.size())
    errors |= bitOf(DeviceError::boxCountTooLarge);
  for (std::size_t i = 0; i < scene.counted(); ++i) {
    if (!scene.hasWorld(i)) errors |= bitOf(DeviceError::worldOutOfRange);
    if (hasNan(scene.grown(i))) errors |= bitOf(DeviceError::nanBox);
  }
  for (std::size_t i = 0; i < scene.excluded.size(); ++i) {
    const Pair pair = scene.excluded[i];
    if (pair.first >= pair.second || (i > 0 && pair < scene.excluded[i - 1]))
      errors |= bitOf(DeviceError::excludedUnsorted);
  }
  return errors;
}

/// The number of worlds. Without an array of worlds, there is at least world 0.
std::uint32_t worldsOf(const SceneModel& scene) {
  return scene.worlds.empty() ? std::max(scene.worldCount, 1u) : scene.worldCount;
}

/// Whether the worlds of a box and a query allow a hit.
bool mayMeet(const SceneModel& scene, std::size_t box, const Indices& worlds, std::size_t query) {
  if (worlds.empty() || worlds[query] == kAllWorlds) return true;
  if (worlds[query] >= worldsOf(scene)) return false;
  if (scene.worlds.empty()) return worlds[query] == 0;
  return scene.worlds[box] == worlds[query] || scene.worlds[box] == kAllWorlds;
}

template <class Query, class Meets>
std::vector<Indices> allHits(const SceneModel& scene, const std::vector<Query>& queries,
                             const Indices& worlds, const Meets& meets) {
  const Boxes boxes = grownBoxes(scene);
  std::vector<Indices> hits(queries.size());
  for (std::size_t query = 0; query < queries.size(); ++query)
    for (std::uint32_t i = 0; i < boxes.size(); ++i)
      if (!hasNan(boxes[i]) && mayMeet(scene, i, worlds, query) && meets(queries[query], boxes[i]))
        hits[query].push_back(i);
  return hits;
}

}  // namespace

std::vector<float> SceneModel::corners(bool ofUpper) const {
  return strided(boxes.size(), ofUpper ? upperStep : lowerStep,
                 [&](std::size_t i) { return ofUpper ? boxes[i].max : boxes[i].min; });
}

std::vector<float> SceneModel::packed() const {
  std::vector<float> floats;
  for (const Aabb& box : boxes) {
    floats.insert(floats.end(), box.min, box.min + 3);
    floats.insert(floats.end(), box.max, box.max + 3);
  }
  return floats;
}

std::vector<float> SceneModel::ways() const {
  return strided(displacements.size(), wayStep, [&](std::size_t i) { return displacements[i].by; });
}

std::size_t SceneModel::counted() const {
  return count.empty() ? boxes.size() : std::min<std::size_t>(count[0], boxes.size());
}

bool SceneModel::hasWorld(std::size_t box) const {
  return worlds.empty() || worlds[box] < worldCount || worlds[box] == kAllWorlds;
}

Aabb SceneModel::grown(std::size_t box) const {
  Aabb grown = boxes[box];
  const float margin = margins.empty() ? 0 : margins[box];
  for (int axis = 0; axis < 3; ++axis) {
    const float way = displacements.empty() ? 0 : displacements[box].by[axis];
    const float swept = (way < 0 ? grown.min : grown.max)[axis] + way;
    (way < 0 ? grown.min : grown.max)[axis] = swept;
    grown.min[axis] = grown.min[axis] - margin;
    grown.max[axis] = grown.max[axis] + margin;
  }
  return grown;
}

SceneAnswer answerOf(const SceneModel& scene) {
  SceneAnswer answer;
  answer.byWorld.assign(std::size_t{scene.worldCount} + 1, 0);
  answer.errors = errorsOf(scene);
  const Boxes boxes = grownBoxes(scene);
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    for (std::uint32_t j = i + 1; j < boxes.size(); ++j) {
      const Pair pair{i, j};
      if (!overlap(boxes[i], boxes[j]) || !areTogether(scene, pair) || !mayCollide(scene, pair))
        continue;
      answer.pairs.push_back(pair);
      ++answer.byWorld[worldOf(scene, pair)];
    }
  }
  return answer;
}

Neighbours neighboursOf(const Pairs& pairs, std::size_t boxes) {
  std::vector<Indices> partners(boxes);
  for (const Pair pair : pairs) {
    partners[pair.first].push_back(pair.second);
    partners[pair.second].push_back(pair.first);
  }
  Neighbours neighbours{{0}, {}};
  for (Indices& list : partners) {
    std::sort(list.begin(), list.end());
    neighbours.lists.insert(neighbours.lists.end(), list.begin(), list.end());
    neighbours.offsets.push_back(static_cast<std::uint32_t>(neighbours.lists.size()));
  }
  return neighbours;
}

Pairs without(const Pairs& left, const Pairs& right) {
  Pairs rest;
  std::set_difference(left.begin(), left.end(), right.begin(), right.end(),
                      std::back_inserter(rest));
  return rest;
}

bool areAmong(const Pairs& few, const Pairs& many) {
  return std::includes(many.begin(), many.end(), few.begin(), few.end());
}

std::vector<RayHit> closestOf(const SceneModel& scene, const std::vector<Ray>& rays,
                              const Indices& worlds) {
  std::vector<RayHit> closest(rays.size(), {kNullIndex, 0});
  const std::vector<Indices> hits = hitsOf(scene, rays, worlds);
  for (std::size_t ray = 0; ray < rays.size(); ++ray) {
    for (const std::uint32_t box : hits[ray]) {
      const float distance = RayTest(rays[ray]).distanceTo(scene.grown(box));
      if (closest[ray].box == kNullIndex || distance < closest[ray].distance)
        closest[ray] = {box, distance};
    }
  }
  return closest;
}

std::vector<Indices> hitsOf(const SceneModel& scene, const std::vector<Ray>& rays,
                            const Indices& worlds) {
  return allHits(scene, rays, worlds,
                 [](const Ray& ray, const Aabb& box) { return RayTest(ray).distanceTo(box) >= 0; });
}

std::vector<Indices> hitsOf(const SceneModel& scene, const Boxes& queries, const Indices& worlds) {
  return allHits(scene, queries, worlds,
                 [](const Aabb& query, const Aabb& box) { return overlap(query, box); });
}

bool haveUnknown(const SceneModel& scene, const Indices& worlds) {
  return std::any_of(worlds.begin(), worlds.end(), [&](std::uint32_t world) {
    return world >= worldsOf(scene) && world != kAllWorlds;
  });
}

}  // namespace lbvh::test
