// SPDX-License-Identifier: Zlib
// Many small worlds in one space, stepped together: one search for the pairs of all of them.
// Does not time and does not print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broadphase/device_pair_finder.h"
#include "worlds/space.h"

namespace worlds {

class Simulation {
 public:
  /// `boxes` boxes above each other in each of `worlds` worlds, and one ground that is in all of
  /// them. Worlds differ, and are the same in every run.
  Simulation(Space& space, const lbvh::DeviceOptions& options, std::uint32_t worlds,
             std::uint32_t boxes);

  /// Returns when it is done.
  /// @throws std::runtime_error if the search tells of an error
  void step();

  /// Compares what the last search found in one world with what PairFinder finds among its boxes
  /// and the ground. All boxes must be above that.
  /// @return what differs; empty: nothing
  std::string whatDiffers(std::uint32_t world);

  std::size_t objects() const { return scene_.boxes; }  ///< the ground is the last
  std::uint32_t worldCount() const { return scene_.worldCount; }
  std::uint64_t pairs() const { return report_.pairs; }  ///< of the last search
  int repeated() const { return repeated_; }  ///< searches, because there was too little room
  std::uint64_t hash();                       ///< of all positions and velocities, bit by bit

  /// The boxes of the first worlds, as if these lay side by side on a square grid, each on a piece
  /// of the ground. They are where the last search saw them.
  std::vector<lbvh::Aabb> sideBySide(std::uint32_t worlds);

 private:
  Space& space_;
  lbvh::DevicePairFinder finder_;
  std::uint32_t boxes_;  ///< a world
  Bodies bodies_{};
  lbvh::DeviceScene scene_;
  lbvh::DeviceRequest request_;
  lbvh::DeviceLists found_;
  lbvh::DeviceReport report_{};
  int repeated_ = 0;
};

}  // namespace worlds
