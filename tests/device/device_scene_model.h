// SPDX-License-Identifier: Zlib
// A scene for DevicePairFinder in ordinary vectors, and what the comments of device_scene.h and
// device_query.h say about it, worked out one box after the other.
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

/// Where a box goes.
struct Way {
  float by[3];
};

/// What a DeviceScene points to. Empty vectors are arrays that are not there.
struct SceneModel {
  Boxes boxes;
  Indices count;  ///< one number, or none
  std::vector<float> margins;
  std::vector<Way> displacements;
  std::vector<Filter> filters;
  Indices bodies;
  std::vector<std::uint8_t> movable;
  Indices worlds;
  std::uint32_t worldCount = 0;
  Pairs excluded;

  bool isPacked = true;                            ///< lower and upper corners in one array
  std::size_t lowerStep = 3, upperStep = 3;        ///< otherwise; in floats
  std::size_t wayStep = 3;                         ///< of displacements
  std::vector<float> corners(bool ofUpper) const;  ///< as an array of the engine's; not packed
  std::vector<float> packed() const;               ///< both
  std::vector<float> ways() const;                 ///< displacements, likewise

  std::size_t counted() const;           ///< how many boxes do
  bool hasWorld(std::size_t box) const;  ///< or is in all of them
  Aabb grown(std::size_t box) const;     ///< by its displacement and its margin
};

/// What a search should find.
struct SceneAnswer {
  Pairs pairs;
  Indices byWorld;
  std::uint32_t errors = 0;
};
SceneAnswer answerOf(const SceneModel& scene);

/// The partners of each box one after the other, and where those of each begin.
struct Neighbours {
  Indices offsets, lists;
};
Neighbours neighboursOf(const Pairs& pairs, std::size_t boxes);

/// The pairs that only `left` has. Both are sorted.
Pairs without(const Pairs& left, const Pairs& right);

/// Whether all of `few` are in `many`. Both are sorted.
bool areAmong(const Pairs& few, const Pairs& many);

/// What queries should find. `worlds` may be empty.
std::vector<RayHit> closestOf(const SceneModel& scene, const std::vector<Ray>& rays,
                              const Indices& worlds);
std::vector<Indices> hitsOf(const SceneModel& scene, const std::vector<Ray>& rays,
                            const Indices& worlds);
std::vector<Indices> hitsOf(const SceneModel& scene, const Boxes& queries, const Indices& worlds);
/// Whether a query's world is neither one of the scene's nor all of them.
bool haveUnknown(const SceneModel& scene, const Indices& worlds);

/// n boxes, with or without each of the arrays; a few have many pairs, none has too many.
SceneModel randomScene(std::size_t n, Random& random);
/// The same with every error that is a box's or the count's, now and then.
SceneModel spoiltScene(std::size_t n, Random& random);
/// The arrays that a graph reads: boxes, count, worlds, filters. Always as many and as large.
SceneModel steadyScene(std::size_t n, std::uint32_t worldCount, Random& random);

/// Kind ones and nasty ones. Many meet boxes of random scenes, at ties too.
std::vector<Ray> randomRays(std::size_t n, Random& random);
Boxes randomQueries(std::size_t n, Random& random);
/// For queries: worlds of the scene, all of them, and, where they may, such as there are not.
Indices randomWorlds(std::size_t n, const SceneModel& scene, bool mayBeUnknown, Random& random);

}  // namespace test
}  // namespace lbvh
