// The seam between the public faces and the spaces: what a pipeline takes, gives and how it fails.
// Pipelines: pipelines/host.cpp, pipelines/cuda.cuh, pipelines/fallback.h.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "broadphase/device_pair_finder.h"
#include "broadphase/pair_finder.h"
#include "broadphase/stages/step_header.h"

namespace lbvh {

/// What a step reads. `changed`: as for PairFinder::update, or null. `removedObjects` by box (may
/// be shorter): its old pairs do not count.
struct StepInput {
  View<const Aabb> boxes;
  View<const Filter> filters;
  View<const std::uint8_t> removedObjects;
  std::uint64_t maxPairs;
  View<const std::uint64_t> changed = {};
};

/// Where the last step ran, and why there; as in Stats.
struct SpaceInfo {
  std::string backend, reason;
};

/// A pipeline whose space is not known to the caller.
class Pipeline {
 public:
  virtual ~Pipeline() = default;
  /// Runs all stages; fills the figures and milliseconds of `stats`. On an exception pairs() is
  /// still the result of the step before, added() and removed() are empty.
  virtual void step(const StepInput& input, StepStats& stats) = 0;
  /// Runs the stages up to the hierarchy.
  virtual void buildTree(View<const Aabb> boxes, StepStats& stats) = 0;

  /// Takes `pairs` for the result of the step before, and trusts nothing it was told earlier.
  virtual void setPreviousPairs(View<const Pair> pairs) = 0;

  virtual View<const Pair> pairs() const = 0;  ///< of a space of its own memory: there
  virtual View<const Pair> added() const = 0;
  virtual View<const Pair> removed() const = 0;
  virtual Tree tree() const = 0;  ///< likewise, of the last buildTree(), until the next step
  virtual PackedScene packed() const { return {}; }  ///< of the last step
  /// Null if it never changes.
  virtual const SpaceInfo* info() const { return nullptr; }
  virtual std::size_t memoryBytes() const = 0;
};

/// A space that failed in the middle of a step, which can be finished elsewhere.
struct SpaceError : std::runtime_error {
  SpaceError(const std::string& what, bool sticky) : std::runtime_error(what), isSticky(sticky) {}
  bool isSticky;  ///< this space will not work again in this process
};

/// @throws std::length_error, std::invalid_argument as PairFinder::update
void requireFitting(View<const Aabb> boxes, View<const Filter> filters);

/// What DevicePairFinder needs of a space that works by streams.
class DevicePipeline {
 public:
  virtual ~DevicePipeline() = default;
  virtual DevicePairs find(View<const Aabb> boxes, View<const Filter> filters,
                           CUstream_st* stream) = 0;
};

std::unique_ptr<Pipeline> makeHostPipeline(int threads);

// Only in builds with CUDA (pipelines/cuda.cu).
std::string whyNoCuda();       ///< empty if there is a device that can run our kernels
std::string cudaDeviceName();  ///< @throws SpaceError
std::unique_ptr<Pipeline> makeCudaPipeline(bool timesStages);  ///< @throws SpaceError
std::unique_ptr<DevicePipeline> makeDevicePipeline(std::size_t leastCapacity);  ///< likewise

/// @throws std::length_error
void requireAtMost(std::uint64_t maxPairs, std::uint64_t pairs);

}  // namespace lbvh
