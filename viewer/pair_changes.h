// SPDX-License-Identifier: Zlib
// Which pairs were added and removed by the last step, and which lately, with any broad phase.
// Compares the pair cache with what it was a step before. Does not draw.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "scenes/world.h"

/// A pair that was added or removed, at the place that its two objects had then.
struct Flash {
  btVector3 from, to;
  bool isAdded = false;
  int age = 0;  ///< steps since
};

/// The indices of two objects in the world's array of objects; the lesser first.
using ObjectPair = std::pair<int, int>;

/// All pairs of the cache, sorted.
std::vector<ObjectPair> pairsOf(World& world);

/// Where a pair is drawn: from centre to centre, but with static objects, whose centre may be far
/// away, to the nearest point of their box.
std::pair<btVector3, btVector3> endsOf(World& world, const btCollisionObject& a,
                                       const btCollisionObject& b);

class PairChanges {
 public:
  static constexpr int kLifetime = 15;  ///< steps that a flash lasts

  /// To be called after each step.
  void update(World& world);
  /// Takes the cache as it is, without any change to show: for a new world, and for a new broad
  /// phase, which may have other pairs of the same boxes.
  void reset(World& world);

  const std::deque<Flash>& flashes() const { return flashes_; }
  std::size_t added() const { return added_; }      ///< by the last step
  std::size_t removed() const { return removed_; }  ///< likewise

 private:
  std::vector<ObjectPair> pairs_;
  std::deque<Flash> flashes_;
  std::size_t added_ = 0, removed_ = 0;
};
