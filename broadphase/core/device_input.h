// SPDX-License-Identifier: Zlib
// Before stage 1 of a search among boxes as an engine keeps them: packed boxes, and the world of
// each; and in stage 5 the rule which pairs count. The same on every space.
#pragma once

#include <cstdint>
#include <limits>

#include "broadphase/core/atomics.h"
#include "broadphase/core/morton.h"
#include "broadphase/device_scene.h"
#include "broadphase/types.h"

namespace lbvh {

/// How many worlds boxes and queries may name: without `worlds` there is world 0.
LBVH_HD inline std::uint32_t worldsOf(const DeviceScene& scene) {
  return scene.worlds == nullptr && scene.worldCount == 0 ? 1 : scene.worldCount;
}

/// Which pairs of boxes that overlap in one world count.
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

  LBVH_HD bool acceptsAll() const {
    return filters == nullptr && bodies == nullptr && movable == nullptr && excluded.empty();
  }

  LBVH_HD bool operator()(Pair pair) const {
    const std::uint32_t a = pair.first, b = pair.second;
    if (filters != nullptr && !shouldCollide(filters[a], filters[b])) return false;
    if (bodies != nullptr && bodies[a] == bodies[b] && bodies[a] != kNoBody) return false;
    if (movable != nullptr && movable[a] == 0 && movable[b] == 0) return false;
    return !isExcluded(pair);
  }

 private:
  LBVH_HD bool isExcluded(Pair pair) const {
    std::size_t begin = 0, end = excluded.size;
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      if (excluded[middle] < pair)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < excluded.size && excluded[begin] == pair;
  }
};

/// Element i: packs box i, and looks at excluded pair i. As many elements as the longer has.
struct GatherBoxes {
  DeviceScene scene;
  Aabb* boxes;            ///< packed; with a NaN those that do not count
  std::uint32_t* ranks;   ///< the world; worldsOf() if it is in all, one more if it is in none
  std::uint32_t* errors;  ///< of DeviceReport; 0 before

  LBVH_HD static std::size_t elements(const DeviceScene& scene) {
    const std::size_t least = scene.count != nullptr ? 1 : 0;
    const std::size_t boxes = scene.boxes > least ? scene.boxes : least;
    return boxes > scene.excluded.size ? boxes : scene.excluded.size;
  }

  LBVH_HD void operator()(std::uint32_t i) const {
    const std::uint32_t count = scene.count != nullptr ? *scene.count : kNullIndex;
    std::uint32_t error = 0;
    if (i == 0 && scene.count != nullptr && count > scene.boxes) error |= kCountIsTooLarge;
    if (i < scene.boxes) error |= pack(i, count);
    if (i < scene.excluded.size && !isInOrder(i)) error |= kExcludedAreUnsorted;
    if (error != 0) setBits(errors, error);
  }

 private:
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

  LBVH_HD std::uint32_t pack(std::uint32_t i, std::uint32_t count) const {
    std::uint32_t error = 0;
    const Aabb box = i < count ? boxAt(i) : nothing();
    const std::uint32_t rank = i < count ? rankOf(i) : nowhere();
    const bool overlaps = !hasNan(box) && rank != nowhere();
    boxes[i] = overlaps ? box : nothing();
    ranks[i] = overlaps ? rank : nowhere();
    if (i < count && hasNan(box)) error |= kBoxIsNan;
    if (i < count && rank == nowhere()) error |= kWorldIsOutOfRange;
    return error;
  }

  LBVH_HD std::uint32_t rankOf(std::uint32_t i) const {
    if (scene.worlds == nullptr) return 0;
    const std::uint32_t world = scene.worlds[i];
    if (world == kAllWorlds) return worldsOf(scene);
    return world < worldsOf(scene) ? world : nowhere();
  }
  /// The rank of what overlaps nothing.
  LBVH_HD std::uint32_t nowhere() const { return worldsOf(scene) + 1; }

  LBVH_HD Aabb boxAt(std::uint32_t i) const {
    const float* lower = at(scene.lower, i);
    const float* upper = at(scene.upper, i);
    const float margin = scene.margins != nullptr ? scene.margins[i] : 0;
    Aabb box{{lower[0], lower[1], lower[2]}, {upper[0], upper[1], upper[2]}};
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

  LBVH_HD static const float* at(const Triples& triples, std::uint32_t i) {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(triples.data) +
                                          triples.stride * i);
  }
  LBVH_HD static bool hasNan(const Aabb& box) { return classify(box) == BoxClass::nan; }
  LBVH_HD static Aabb nothing() { return {{kNan, kNan, kNan}, {kNan, kNan, kNan}}; }

  LBVH_HD bool isInOrder(std::uint32_t i) const {
    const Pair pair = scene.excluded[i];
    return pair.first < pair.second && (i == 0 || !(pair < scene.excluded[i - 1]));
  }
};

}  // namespace lbvh
