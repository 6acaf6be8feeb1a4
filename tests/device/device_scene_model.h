// SPDX-License-Identifier: Zlib
// A scene for DevicePairFinder, stored in ordinary vectors. Also the results that device_scene.h
// and device_query.h promise for it, computed by brute force.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"
#include "support.h"

namespace lbvh {

inline bool operator==(RayHit a, RayHit b) {
  return a.box == b.box && (a.box == kNullIndex || a.distance == b.distance);
}
inline void PrintTo(RayHit hit, std::ostream* out) {
  *out << "box " << hit.box << " at " << hit.distance;
}

namespace test {

using Indices = std::vector<std::uint32_t>;

/// The displacement of a box.
struct Way {
  float by[3];
};

/// The arrays of a DeviceScene. An empty vector stands for an absent array.
struct SceneModel {
  Boxes boxes;
  Indices count;  ///< one number, or empty
  std::vector<float> margins;
  std::vector<Way> displacements;
  std::vector<Filter> filters;
  Indices bodies;
  std::vector<std::uint8_t> movable;
  Indices worlds;
  std::uint32_t worldCount = 0;
  Pairs excluded;

  /// Whether lower and upper corners are in one array.
  bool isPacked = true;
  std::size_t lowerStep = 3, upperStep = 3;        ///< strides if not packed, in floats
  std::size_t wayStep = 3;                         ///< stride of displacements, in floats
  std::vector<float> corners(bool ofUpper) const;  ///< lower or upper corners, with their stride
  std::vector<float> packed() const;               ///< both corners of each box
  std::vector<float> ways() const;                 ///< displacements, with their stride

  std::size_t counted() const;           ///< number of boxes that are not ignored
  bool hasWorld(std::size_t box) const;  ///< whether the box's world is valid
  Aabb grown(std::size_t box) const;     ///< the box with its displacement and its margin
};

/// The results that a search should have.
struct SceneAnswer {
  Pairs pairs;
  Indices byWorld;
  std::uint32_t errors = 0;
};
SceneAnswer answerOf(const SceneModel& scene);

/// The partners of all boxes in one list, and where the partners of each box begin.
struct Neighbours {
  Indices offsets, lists;
};
Neighbours neighboursOf(const Pairs& pairs, std::size_t boxes);

/// The pairs that only `left` has. Both lists must be sorted.
Pairs without(const Pairs& left, const Pairs& right);

/// Whether all pairs of `few` are in `many`. Both lists must be sorted.
bool areAmong(const Pairs& few, const Pairs& many);

/// The results that queries should have. `worlds` may be empty.
std::vector<RayHit> closestOf(const SceneModel& scene, const std::vector<Ray>& rays,
                              const Indices& worlds);
std::vector<Indices> hitsOf(const SceneModel& scene, const std::vector<Ray>& rays,
                            const Indices& worlds);
std::vector<Indices> hitsOf(const SceneModel& scene, const Boxes& queries, const Indices& worlds);
/// Whether any query's world is neither a world of the scene nor kAllWorlds.
bool haveUnknown(const SceneModel& scene, const Indices& worlds);

/// A random scene of n boxes. Each optional array may be absent. A few scenes have many pairs, but
/// not so many that brute force takes long.
SceneModel randomScene(std::size_t n, Random& random);
/// A random scene that sometimes has errors in its boxes, its worlds or its count.
SceneModel spoiltScene(std::size_t n, Random& random);
/// A random scene for graphs. It always has the same arrays (boxes, count, worlds, filters) with
/// the same sizes.
SceneModel steadyScene(std::size_t n, std::uint32_t worldCount, Random& random);

/// Ordinary and degenerate rays. In random scenes many of them hit boxes, and some hit several
/// boxes at the same distance.
std::vector<Ray> randomRays(std::size_t n, Random& random);
Boxes randomQueries(std::size_t n, Random& random);
/// Random worlds for queries: worlds of the scene, kAllWorlds and, if allowed, unknown worlds.
Indices randomWorlds(std::size_t n, const SceneModel& scene, bool mayBeUnknown, Random& random);

}  // namespace test
}  // namespace lbvh
