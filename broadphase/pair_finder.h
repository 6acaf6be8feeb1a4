// The public face of the core: boxes in; sorted overlapping pairs, and what changed, out.
// Knows neither Bullet nor CUDA types; what a step does is in pipelines/host.cpp and
// pipelines/cuda.cuh. C++17.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broadphase/types.h"

namespace lbvh {

enum class Backend {
  automatic,  ///< the GPU if this build and machine have one, else the host's cores
  host,       ///< the host's cores
  cuda,       ///< the GPU; an error where there is none
};

struct Options {
  Backend backend = Backend::automatic;

  /// Host threads; 0 = all cores. The result does not depend on it.
  int threads = 0;

  /// A step that finds more pairs than this fails instead of filling the machine's memory.
  /// The default, 2^28 pairs, needs up to 7 GiB, and Bullet's cache as much again.
  std::uint64_t maxPairs = std::uint64_t{1} << 28;

  /// On a GPU: time each stage. Off, because small scenes wait for the sixteen events longer than
  /// for their pairs; without it only `totalMs` is known there. On the host times cost nothing.
  bool stageTimes = false;
};

/// What the last step did, and how long each stage took (wall clock, milliseconds).
struct StepStats {
  std::size_t objects = 0;      ///< boxes handed in
  std::size_t pairs = 0;        ///< overlapping pairs
  std::size_t added = 0;        ///< pairs that the step before did not have
  std::size_t removed = 0;      ///< pairs that only the step before had
  std::size_t searched = 0;     ///< boxes whose pairs were searched for; the others rested
  std::size_t sideBoxes = 0;    ///< infinite and giant boxes, tested against all others
  std::size_t nanBoxes = 0;     ///< boxes with a NaN: they overlap nothing
  std::size_t capacity = 0;     ///< pairs that fit without growing
  std::size_t memoryBytes = 0;  ///< held by the finder, boxes not included
  int mortonBits = 0;           ///< 30 or 63

  double boundsMs = 0;
  double codesMs = 0;
  double sortMs = 0;
  double hierarchyMs = 0;
  double traversalMs = 0;
  double pairSortMs = 0;
  double deltaMs = 0;
  double totalMs = 0;
};

struct Stats : StepStats {
  std::string backend;  ///< "host" or the GPU's name
  std::string reason;   ///< why this backend was chosen
  int threads = 0;      ///< host threads in use
};

/// Empty if `backend` can be had with this build on this machine, else one line saying why not.
std::string whyUnavailable(Backend backend);

struct PackedBoxes;

/// The boxes of an update that ran on the host, packed; those that rest and those that moved. Null:
/// there are none, or it ran elsewhere or failed. For this library's own queries.
struct PackedScene {
  const PackedBoxes* resting = nullptr;
  const PackedBoxes* moving = nullptr;
};

/// Finds all overlapping pairs of a set of closed boxes, exactly: the result equals brute force
/// with `overlap()`, in the same order on every backend, thread count and run.
///
/// Instances share nothing; one instance is used by one thread at a time. Box i of one update and
/// box i of the next are the same object, unless `forget(i)` was called between them.
class PairFinder {
 public:
  /// @throws std::runtime_error if `options.backend` cannot be had (see whyUnavailable)
  /// @throws std::invalid_argument if `options.threads` is negative
  explicit PairFinder(const Options& options = {});
  ~PairFinder();
  PairFinder(PairFinder&&) noexcept;
  PairFinder& operator=(PairFinder&&) noexcept;

  /// Finds the pairs among `boxes` (at most 2^30), and the difference to the update before.
  /// With `filters` (as many as boxes) only pairs that `wanted()` accepts; without, all pairs.
  /// The arrays are read during the call only.
  /// @throws std::invalid_argument if the arrays do not fit each other
  /// @throws std::length_error on more than `Options::maxPairs` pairs or 2^30 boxes
  /// @throws std::bad_alloc
  /// After an exception pairs() is still the result of the update before, added() and removed()
  /// are empty, and stats() tell how far the failed update came.
  ///
  /// With `changed`, a bit a box (box i is bit i % 64 of word i / 64), a caller tells which boxes
  /// or filters may differ from those of the last update that did not throw; boxes behind that
  /// one's are known to be new. Without, the finder keeps copies of all, and compares.
  void update(View<const Aabb> boxes, View<const Filter> filters = {},
              View<const std::uint64_t> changed = {});

  /// An update with the same boxes and filters as the last one, and nothing forgotten since, in no
  /// time: nothing is added or removed. For callers that know.
  void updateUnchanged() noexcept;

  /// From the next update on, box `index` is another object: its old pairs count neither as living
  /// nor as removed.
  void forget(std::uint32_t index) noexcept;

  /// The views below are valid until the next update. Each is sorted by (first, second).
  View<const Pair> pairs() const;
  View<const Pair> added() const;
  View<const Pair> removed() const;

  /// Builds only the tree over `boxes`; pairs and delta stay those of the last update.
  void buildTree(View<const Aabb> boxes);

  /// The tree of the last buildTree, for queries (tree_query.h); an update drops it, because its
  /// own search needs none.
  Tree tree() const;

  /// What the last update left in order, for query/block_query.h; until the next one.
  PackedScene packed() const;

  const Stats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh
