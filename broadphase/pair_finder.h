// The public face of the core: boxes in; sorted overlapping pairs, and what changed, out.
// Knows neither Bullet nor CUDA types; what a step does is in pipelines/host.cpp and
// pipelines/cuda.cuh. C++17.
#pragma once

#include <cstdint>
#include <memory>

#include "broadphase/options.h"
#include "broadphase/types.h"

namespace lbvh {

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
/// box i of the next are the same object, unless `removeObject(i)` was called between them.
class PairFinder {
 public:
  /// @throws std::runtime_error if `options.backend` cannot be had (see whyUnavailable)
  /// @throws std::invalid_argument if `options.threads` is negative
  explicit PairFinder(const Options& options = {});
  ~PairFinder();
  PairFinder(PairFinder&&) noexcept;
  PairFinder& operator=(PairFinder&&) noexcept;

  /// Finds the pairs among `boxes` (at most 2^30), and the difference to the update before.
  /// With `filters` (as many as boxes) only pairs that `shouldCollide()` accepts; without, all
  /// pairs. The arrays are read during the call only.
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

  /// An update with the same boxes and filters as the last one, and nothing removedObjects since,
  /// in no time: nothing is added or removed. For callers that know.
  void updateUnchanged() noexcept;

  /// From the next update on, box `index` is another object: its old pairs count neither as living
  /// nor as removed.
  void removeObject(std::uint32_t index) noexcept;

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
