// SPDX-License-Identifier: Zlib
// Defines the interface between PairFinder and the spaces: the input, the results and the errors of
// a step. Pipelines are in host/step.cpp, host/tree_step.cpp and cuda/step.cuh. choose/adaptive.h
// switches between host and GPU.
#pragma once

#include <string>

#include "broadphase/core/step_header.h"
#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

struct PackedBoxes;

/// Where the last step ran, and why. The members are as in Stats.
struct SpaceInfo {
  std::string backend, reason;
  SpaceReason spaceReason = SpaceReason::requested;
  double hostMeanMs = 0, gpuMeanMs = 0;
  std::size_t switches = 0;
  /// How often the GPU failed before the pairs of its last step were copied, so that the host
  /// searched for them again. The next changes are relative to the host's pairs, even if the GPU's
  /// pairs were wrong.
  std::size_t losses = 0;

  /// @throws std::bad_alloc; then nothing has changed
  void say(SpaceReason code, const std::string& words) {
    reason = words;
    spaceReason = code;
  }
};

/// Copies the results of stage 1 and the length of the codes to `stats`.
inline void describe(const StepHeader& header, StepStats& stats) {
  stats.oversizedBoxes = header.scene.oversized;
  stats.nanBoxes = header.scene.nan;
  stats.mortonBits = 3 * header.grid.bits;
}

/// Runs the stages of steps, on the host or on a GPU.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  /// Runs the stages of one step, and writes counts and milliseconds to `stats`.
  /// @throws SpaceError, std::bad_alloc; std::length_error if there are too many pairs. Then
  ///   pairs() is still the result of the previous step, and added() and removed() are empty.
  virtual void step(const StepInput& input, StepStats& stats) = 0;

  /// Called instead of step() if nothing has changed. May order and pack the boxes of the last step
  /// again, to make queries faster. Invalidates earlier results of packed().
  virtual void rest() noexcept {}

  /// Replaces the pairs of the last step with `pairs`. The pipeline no longer uses what it has kept
  /// from earlier steps.
  virtual void setPreviousPairs(View<const Pair> pairs) = 0;

  /// The pairs of the last step, sorted. The first call after a step may have to sort or copy them.
  /// @throws std::bad_alloc
  virtual View<const Pair> pairs() = 0;
  virtual View<const Pair> added() const = 0;
  virtual View<const Pair> removed() const = 0;

  /// The boxes of the last step in blocks, for host/block_query.h. Valid until the next step() or
  /// rest(). Null if the step failed, or did not pack blocks in the host's memory.
  virtual const PackedBoxes* packed() const { return nullptr; }
  virtual const SpaceInfo* info() const { return nullptr; }  ///< null if the space never changes
  virtual std::size_t memoryBytes() const = 0;
};

}  // namespace lbvh
