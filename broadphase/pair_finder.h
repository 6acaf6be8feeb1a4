// SPDX-License-Identifier: Zlib
/// @file
/// The public face of the core: boxes in; sorted overlapping pairs, and what changed, out. Knows
/// neither Bullet nor CUDA types. What a step does is in host/step.cpp and cuda/step.cuh.
/// C++17.
#pragma once

#include <cstdint>
#include <memory>

#include "options.h"
#include "types.h"

namespace lbvh {

/// Finds all overlapping pairs of a set of closed boxes. The result is exact: it equals brute force
/// with `overlap()`. A box with a NaN has no pairs; inverted and infinite boxes have those that the
/// six comparisons give. It is the same, in the same order, on every backend, instruction
/// set, thread count and run.
///
/// Coordinates are in any unit. Box i of one update and box i of the next are the same object,
/// unless `removeObject(i)` was called between them. Instances share nothing. One thread at a time
/// may use an instance.
class GPULBVH_API PairFinder {
 public:
  /// @throws std::runtime_error if `options.backend` or `options.instructions` cannot be had (see
  ///   whyUnavailable)
  /// @throws std::invalid_argument if `options.threads` is negative
  explicit PairFinder(const Options& options = {});
  /// Waits for what a GPU is doing, its warm-up in the background included.
  ~PairFinder();
  /// What was moved from may only be assigned to or destroyed.
  PairFinder(PairFinder&&) noexcept;
  /// As the constructor; what was there before goes as by the destructor.
  PairFinder& operator=(PairFinder&&) noexcept;

  /// Finds the pairs among `boxes`, and the difference to the update before. The arrays are read
  /// during the call only.
  /// @param boxes at most 2^30
  /// @param filters as many as boxes: only pairs that `shouldCollide()` accepts. Or none: all pairs
  /// @param changed a bit for each box (box i is bit i % 64 of word i / 64): whether the box or its
  ///   filter may differ from the last update that did not throw. Boxes that update did not have
  ///   count as changed. Or none: the finder keeps copies of the boxes, while that pays, and
  ///   compares.
  /// @throws std::invalid_argument if the arrays do not fit each other
  /// @throws std::length_error on more than `Options::maxPairs` pairs or 2^30 boxes
  /// @throws std::bad_alloc
  /// After an exception pairs() is still the result of the update before, and added() and removed()
  /// are empty. If a stage has failed, stats() tell how far the update came.
  void update(View<const Aabb> boxes, View<const Filter> filters = {},
              View<const std::uint64_t> changed = {});

  /// Counts as an update in which nothing has changed. Takes no time, but for one call some steps
  /// after boxes have come to rest: it may put them in order again, so that queries are as fast as
  /// they can be. The caller must be sure that no box, filter or object has changed.
  void updateUnchanged() noexcept;

  /// From the next update on, box `index` is another object, if there is one. The old object's
  /// pairs end without being reported as removed. An index that the last update did not have is
  /// ignored.
  void removeObject(std::uint32_t index) noexcept;

  /// The overlapping pairs, sorted by (first, second), until the next update. They are put in order
  /// when they are asked for.
  /// @throws std::bad_alloc; then ask again
  View<const Pair> pairs() const;
  /// Those that the update before did not have, sorted alike, until the next update.
  View<const Pair> added() const;
  /// Those that only the update before had, sorted alike, until the next update.
  View<const Pair> removed() const;

  /// Builds only the tree over `boxes`. Pairs and delta stay those of the last update.
  /// @throws std::length_error, std::bad_alloc; then there is no tree
  void buildTree(View<const Aabb> boxes);

  /// The tree of the last buildTree, for queries (tree_query.h). An update drops it.
  Tree tree() const;

  /// What the last update left in order, for host/scene_query.h; until the next one, or
  /// updateUnchanged().
  PackedScene packed() const;

  /// Figures of the last update, and where it ran.
  const Stats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh
