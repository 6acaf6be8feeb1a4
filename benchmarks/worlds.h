// SPDX-License-Identifier: Zlib
// One scene of boxes for a DevicePairFinder, again and again, on the host or on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "broadphase/types.h"

struct WorldBoxes {
  std::vector<lbvh::Aabb> boxes;
  std::vector<std::uint32_t> worlds;  ///< by box; empty: they have none
  std::uint32_t worldCount = 0;
};

class WorldsRun {
 public:
  virtual ~WorldsRun() = default;
  /// Searches once. @return how many pairs there are
  virtual std::uint64_t step() = 0;
};

/// Only in builds with CUDA. @throws std::runtime_error
std::unique_ptr<WorldsRun> runOnCuda(const WorldBoxes& scene);
