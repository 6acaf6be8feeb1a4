// SPDX-License-Identifier: Zlib
// Finds the pairs that the last few steps added and removed, with any broad phase. Compares the
// pair cache with its contents one step earlier. Does not draw.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "scenes/world.h"

/// A pair that was added or removed, and the positions of its two objects at that time.
struct Flash {
  btVector3 from, to;
  bool isAdded = false;
  int age = 0;  ///< steps since the change
};

/// The indices of two objects in the world's array of objects; the smaller one first.
using ObjectPair = std::pair<int, int>;

/// All pairs of the cache, sorted.
std::vector<ObjectPair> pairsOf(World& world);

/// The ends of a pair's line: the centres of both objects. For a static object, whose centre may be
/// far away, the end is the nearest point of its box instead.
std::pair<btVector3, btVector3> endsOf(World& world, const btCollisionObject& a,
                                       const btCollisionObject& b);

class PairChanges {
 public:
  static constexpr int kLifetime = 15;  ///< steps for which a flash is shown

  /// Call this after each step.
  void update(World& world);
  /// Stores the current pairs without showing changes. Call this for a new world, and for a new
  /// broad phase, which may find different pairs for the same boxes.
  void reset(World& world);

  const std::deque<Flash>& flashes() const { return flashes_; }
  std::size_t added() const { return added_; }      ///< pairs that the last step added
  std::size_t removed() const { return removed_; }  ///< pairs that the last step removed

 private:
  std::vector<ObjectPair> pairs_;
  std::deque<Flash> flashes_;
  std::size_t added_ = 0, removed_ = 0;
};
