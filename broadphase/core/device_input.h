// SPDX-License-Identifier: Zlib
// Reads a DeviceScene, on the host or on a GPU. Before stage 1 an engine's boxes are packed, and
// each gets the rank of its world. In stage 5 a rule decides which pairs are kept.
#pragma once

#include <cstdint>
#include <limits>

#include "broadphase/core/atomics.h"
#include "broadphase/core/morton.h"
#include "broadphase/device_scene.h"
#include "broadphase/types.h"

namespace lbvh {

/// Number of worlds that boxes and queries may name. Without `worlds` there is at least world 0.
GPULBVH_HD inline std::uint32_t worldsOf(const DeviceScene& scene) {
  return scene.worlds == nullptr && scene.worldCount == 0 ? 1 : scene.worldCount;
}

/// Decides which pairs are kept, among the pairs of boxes that overlap in a common world.
struct PairRule {
  const Filter* filters = nullptr;
  const std::uint32_t* bodies = nullptr;
  const std::uint8_t* movable = nullptr;
  View<const Pair> excluded;

  PairRule() = default;
  explicit PairRule(const DeviceScene& scene)
      : filters(scene.filters),
        bodies(scene.bodies),
        movable(scene.movable),
        excluded(scene.excluded) {}

  GPULBVH_HD bool acceptsAll() const {
    return filters == nullptr && bodies == nullptr && movable == nullptr && excluded.empty();
  }

  GPULBVH_HD bool operator()(Pair pair) const {
    const std::uint32_t a = pair.first, b = pair.second;
    if (filters != nullptr && !shouldCollide(filters[a], filters[b])) return false;
    if (bodies != nullptr && bodies[a] == bodies[b] && bodies[a] != kNoBody) return false;
    if (movable != nullptr && movable[a] == 0 && movable[b] == 0) return false;
    return !isExcluded(pair);
  }

 private:
  GPULBVH_HD bool isExcluded(Pair pair) const {
    std::size_t begin = 0, end = excluded.size();
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      if (excluded[middle] < pair)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < excluded.size() && excluded[begin] == pair;
  }
};

/// Thread i packs box i, and checks that excluded pair i is in order. There are elements() threads.
struct GatherBoxes {
  DeviceScene scene;
  Aabb* boxes;  ///< receives the boxes; ignored boxes become all NaN
  /// Receives for each box the rank of its world, or worldsOf() if it is in all worlds, or
  /// nowhere() if it is in none.
  std::uint32_t* ranks;
  std::uint32_t* errors;  ///< receives DeviceError bits; must be 0 at first

  GPULBVH_HD static std::size_t elements(const DeviceScene& scene) {
    const std::size_t least = scene.boxCount != nullptr ? 1 : 0;
    const std::size_t boxes = scene.boxCapacity > least ? scene.boxCapacity : least;
    return boxes > scene.excluded.size() ? boxes : scene.excluded.size();
  }

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const std::uint32_t count = scene.boxCount != nullptr ? *scene.boxCount : kNullIndex;
    std::uint32_t error = 0;
    if (i == 0 && scene.boxCount != nullptr && count > scene.boxCapacity)
      error |= bitOf(DeviceError::boxCountTooLarge);
    if (i < scene.boxCapacity) error |= gather(i, count);
    if (i < scene.excluded.size() && !isInOrder(i)) error |= bitOf(DeviceError::excludedUnsorted);
    if (error != 0) setBits(errors, error);
  }

 private:
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

  GPULBVH_HD std::uint32_t gather(std::uint32_t i, std::uint32_t count) const {
    std::uint32_t error = 0;
    const Aabb box = i < count ? boxAt(i) : nothing();
    const std::uint32_t rank = i < count ? rankOf(i) : nowhere();
    const bool overlaps = !hasNan(box) && rank != nowhere();
    boxes[i] = overlaps ? box : nothing();
    ranks[i] = overlaps ? rank : nowhere();
    if (i < count && hasNan(box)) error |= bitOf(DeviceError::nanBox);
    if (i < count && rank == nowhere()) error |= bitOf(DeviceError::worldOutOfRange);
    return error;
  }

  GPULBVH_HD std::uint32_t rankOf(std::uint32_t i) const {
    if (scene.worlds == nullptr) return 0;
    const std::uint32_t world = scene.worlds[i];
    if (world == kAllWorlds) return worldsOf(scene);
    return world < worldsOf(scene) ? world : nowhere();
  }
  /// The rank of a box that overlaps nothing.
  GPULBVH_HD std::uint32_t nowhere() const { return worldsOf(scene) + 1; }

  GPULBVH_HD Aabb boxAt(std::uint32_t i) const {
    const float* min = at(scene.min, i);
    const float* max = at(scene.max, i);
    const float margin = scene.margins != nullptr ? scene.margins[i] : 0;
    Aabb box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    bool isNan = margin != margin;
    for (int axis = 0; axis < 3; ++axis) {
      const float way = scene.displacements.data != nullptr ? at(scene.displacements, i)[axis] : 0;
      isNan |= way != way;
      if (way < 0)
        box.min[axis] += way;
      else
        box.max[axis] += way;
      box.min[axis] -= margin;
      box.max[axis] += margin;
    }
    return isNan ? nothing() : box;
  }

  GPULBVH_HD static const float* at(const StridedVec3& vectors, std::uint32_t i) {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(vectors.data) +
                                          vectors.stride * i);
  }
  GPULBVH_HD static bool hasNan(const Aabb& box) { return classify(box) == BoxClass::nan; }
  GPULBVH_HD static Aabb nothing() { return {{kNan, kNan, kNan}, {kNan, kNan, kNan}}; }

  GPULBVH_HD bool isInOrder(std::uint32_t i) const {
    const Pair pair = scene.excluded[i];
    return pair.first < pair.second && (i == 0 || !(pair < scene.excluded[i - 1]));
  }
};

}  // namespace lbvh
