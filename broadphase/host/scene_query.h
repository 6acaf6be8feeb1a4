// SPDX-License-Identifier: Zlib
// Queries of all boxes of a scene, by whichever order the last step or the last built tree left.
// Does not know whether the boxes have changed since. Host only.
#pragma once

#include "broadphase/host/block_query.h"
#include "broadphase/tree_query.h"
#include "broadphase/types.h"

namespace lbvh {

/// Valid for as long as what it was made of (see PairFinder::packed and PairFinder::tree).
class SceneQuery {
 public:
  /// Of a scene without boxes.
  SceneQuery() = default;
  explicit SceneQuery(const PackedScene& packed) : packed_(packed) {}
  explicit SceneQuery(const Tree& tree) : tree_(tree) {}

  /// Calls visit(box index) for each box for which hits(bounds of the box) is true, and, untested,
  /// for each oversized box and a few others. The bounds may be wider than the box. The order is
  /// unspecified. `hits` takes a Node or an Aabb and must be true for bounds that contain a box it
  /// is true for. A NaN box is never visited. Safe on many threads at once.
  ///
  /// Oversized boxes go untested because their array is not known here: a caller that
  /// creates a box in `visit` moves the array in memory.
  template <class Hits, class Visit>
  void forEach(const Hits& hits, const Visit& visit) const {
    queryNodes(tree_.nodes, hits, visit);
    for (const std::uint32_t box : tree_.oversizedBoxes) visit(box);
    if (packed_.boxes != nullptr) queryPacked(*packed_.boxes, hits, visit);
  }

 private:
  PackedScene packed_;
  Tree tree_;
};

}  // namespace lbvh
