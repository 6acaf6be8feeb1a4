// SPDX-License-Identifier: Zlib
// Repeats searches of one scene by a DevicePairFinder, on the host or on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broadphase/device_scene.h"
#include "broadphase/types.h"
#include "support/recorded_boxes.h"

struct WorldBoxes {
  std::vector<lbvh::Aabb> boxes;
  std::vector<std::uint32_t> worlds;  ///< by box; empty: the scene has no worlds
  std::uint32_t worldCount = 0;
  lbvh::DeviceRequest request = {};  ///< says what the search must find
};

class WorldsRun {
 public:
  virtual ~WorldsRun() = default;
  /// Searches once. @return the number of pairs
  virtual std::uint64_t step() = 0;
  /// The number and the hash of the pairs of the last step.
  virtual PairHash found() = 0;
};

/// Returns a run that searches on the GPU. Only builds with CUDA have this function.
/// @throws std::runtime_error
std::unique_ptr<WorldsRun> runOnCuda(const WorldBoxes& scene);
