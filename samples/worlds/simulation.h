// SPDX-License-Identifier: Zlib
// Steps many small worlds together, on the host or on a GPU. One search finds the pairs of all
// worlds. Does not measure times and does not print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broadphase/device_pair_finder.h"
#include "worlds/space.h"

namespace worlds {

class Simulation {
 public:
  /// Makes `worlds` worlds with `boxes` boxes each, and one ground that is in all of them. The
  /// worlds differ from each other, but every run begins with the same worlds.
  Simulation(Space& space, const lbvh::DeviceOptions& options, std::uint32_t worlds,
             std::uint32_t boxes);

  /// Steps all worlds, and waits until that is done.
  /// @throws std::runtime_error if the search reports an error
  void step();

  /// Compares the pairs that the last search found in one world with those that PairFinder finds
  /// among that world's boxes and the ground. Also checks that no box is below the ground.
  /// @return what differs; empty if nothing does
  std::string whatDiffers(std::uint32_t world);

  std::size_t objects() const { return scene_.boxCapacity; }  ///< the last object is the ground
  std::uint32_t worldCount() const { return scene_.worldCount; }
  std::uint64_t pairs() const { return report_.pairs; }  ///< number of pairs of the last search
  int repeated() const { return repeated_; }  ///< searches repeated because a list was too small
  std::uint64_t hash();                       ///< hash of the bits of all positions and velocities

  /// The boxes of the first worlds in the last search. They are moved so that the worlds are side
  /// by side on a square grid, each on its own piece of ground.
  std::vector<lbvh::Aabb> sideBySide(std::uint32_t worlds);

 private:
  Space& space_;
  lbvh::DevicePairFinder finder_;
  std::uint32_t boxes_;  ///< boxes per world, without the ground
  Bodies bodies_{};
  lbvh::DeviceScene scene_;
  lbvh::DeviceRequest request_;
  lbvh::DeviceLists found_;
  lbvh::DeviceReport report_{};
  int repeated_ = 0;
};

}  // namespace worlds
