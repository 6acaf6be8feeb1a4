// SPDX-License-Identifier: Zlib
// What a pipeline takes and gives, and how it fails: the seam between PairFinder and the spaces.
// Pipelines: host/step.cpp, cuda/step.cuh, and choose/adaptive.h over both.
#pragma once

#include <string>

#include "broadphase/core/step_header.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

/// Where the last step ran, and why there; as in Stats.
struct SpaceInfo {
  std::string backend, reason;
  double hostMedianMs = 0, gpuMedianMs = 0;
  std::size_t switches = 0;
};

/// The figures of the scene as the first stage found it.
inline void describe(const StepHeader& header, StepStats& stats) {
  stats.oversizedBoxes = header.scene.oversized;
  stats.nanBoxes = header.scene.nan;
  stats.mortonBits = 3 * header.grid.bits;
}

/// All stages of a step in their order, on a space that the caller does not know.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  /// Runs all stages, and fills the figures and milliseconds of `stats`.
  /// @throws SpaceError, std::bad_alloc, std::length_error on too many pairs. Then pairs() is still
  ///   the result of the step before, and added() and removed() are empty.
  virtual void step(const StepInput& input, StepStats& stats) = 0;

  /// A step in which nothing has changed. May put the boxes of the last step in order for queries:
  /// what packed() returned before is not valid any more.
  virtual void rest() noexcept {}

  /// Builds only the tree over the boxes, for queries. A GPU's pipeline has none.
  virtual void buildTree(View<const Aabb>) {}

  /// Makes `pairs` the result of the step before. What the pipeline remembers of earlier steps does
  /// not count any more.
  virtual void setPreviousPairs(View<const Pair> pairs) = 0;

  /// Puts the pairs in order, if that has not been needed before. @throws std::bad_alloc
  virtual View<const Pair> pairs() = 0;
  // A space with memory of its own keeps these results there.
  virtual View<const Pair> added() const = 0;
  virtual View<const Pair> removed() const = 0;
  virtual Tree tree() const { return {}; }  ///< of the last buildTree(), until the next step

  virtual PackedScene packed() const { return {}; }  ///< of the last step, in the host's memory
  virtual const SpaceInfo* info() const { return nullptr; }  ///< null if it never changes
  virtual std::size_t memoryBytes() const = 0;
};

}  // namespace lbvh
