// SPDX-License-Identifier: Zlib
/// @file
/// Declares the public interface of the core. A finder takes boxes, and returns the sorted
/// overlapping pairs and the changes since the previous update. The interface uses no types of
/// Bullet or CUDA. The stages of an update are in host/step.cpp and cuda/step.cuh. C++17.
#pragma once

#include <cstdint>
#include <memory>

#include "options.h"
#include "types.h"

namespace lbvh {

struct PackedBoxes;
class SparseBits;

/// How an update ended.
enum class UpdateStatus {
  done,
  invalidArguments,  ///< the sizes of the arrays do not match
  tooManyPairs,      ///< more than Options::maxPairs, or more than 2^30 boxes
  outOfMemory,
  failed,  ///< any other error
};

/// Finds all overlapping pairs in a set of closed boxes. The result is exact: it equals brute force
/// with `overlap()`. A box with a NaN has no pairs. The six comparisons of `overlap()` also
/// apply to inverted and infinite boxes. The pairs and their order are the same on every backend,
/// instruction set and thread count, and in every run.
///
/// Coordinates may have any unit. Box i of one update and box i of the next are the same object,
/// unless `replaceObject(i)` was called between the two. Instances share nothing. Only one thread
/// at a time may use an instance.
class GPULBVH_API PairFinder {
 public:
  /// @throws std::runtime_error if `options.backend` or `options.instructions` is not available on
  ///   this machine (see whyUnavailable)
  /// @throws std::invalid_argument if `options.threads` is negative
  explicit PairFinder(const Options& options = {});
  /// Waits until the GPU has finished the work of this finder, including a warm-up in the
  /// background.
  ~PairFinder();
  /// A moved-from finder may only be assigned to or destroyed.
  PairFinder(PairFinder&&) noexcept;
  /// Destroys this finder's state, then takes over the other's.
  PairFinder& operator=(PairFinder&&) noexcept;

  /// Finds the pairs among `boxes`, and the changes since the previous update. The arrays are read
  /// only during the call.
  /// @param boxes at most 2^30
  /// @param filters one for each box: finds only pairs that `shouldCollide()` accepts. Empty: finds
  ///   all overlapping pairs
  /// @param changed one bit for each box (box i is bit i % 64 of word i / 64). A bit must be set if
  ///   the box or its filter may have changed since the last update that did not throw. Boxes that
  ///   are new since that update are always treated as changed. Empty: the finder compares the
  ///   boxes with copies, which it keeps while that saves time
  /// @throws std::invalid_argument if the sizes of the arrays do not match
  /// @throws std::length_error if there are more than `Options::maxPairs` pairs or 2^30 boxes
  /// @throws std::bad_alloc
  /// After an exception pairs() still returns the result of the previous update, and added() and
  /// removed() are empty. If a stage failed, stats() shows how far the update got.
  void update(View<const Aabb> boxes, View<const Filter> filters = {},
              View<const std::uint64_t> changed = {});

  /// update() for programs without exceptions. Where update() would throw, this returns the kind of
  /// error.
  UpdateStatus tryUpdate(View<const Aabb> boxes, View<const Filter> filters = {},
                         View<const std::uint64_t> changed = {}) noexcept;

  /// Replaces update() if nothing has changed. It returns at once, with one exception. A few steps
  /// after the boxes have come to rest, one call may sort the boxes again to make queries faster.
  /// The caller must be sure that no box, filter or object has changed.
  void updateUnchanged() noexcept;

  /// From the next update on, box `index` belongs to another object, or to none. The pairs of the
  /// previous object end without being reported as removed. An index that the last update did not
  /// have is ignored.
  void replaceObject(std::uint32_t index) noexcept;

  /// The overlapping pairs, sorted by (first, second). Valid until the next update. The first call
  /// after an update sorts them, or copies them from the GPU.
  /// @throws std::bad_alloc; the call may be repeated
  View<const Pair> pairs();
  /// The pairs that the previous update did not have, sorted by (first, second). Valid until the
  /// next update.
  View<const Pair> added() const;
  /// The pairs that only the previous update had, sorted by (first, second). Valid until the next
  /// update.
  View<const Pair> removed() const;

  /// What the last update did, how long it took, and where it ran.
  const Stats& stats() const;

  // Deprecated names of version 0.2, to be removed in 0.4.

  /// Calls replaceObject().
  [[deprecated("use replaceObject")]] void removeObject(std::uint32_t index) noexcept;
  /// Returns the same pairs as the non-const pairs(). It may sort them, too.
  [[deprecated("pairs() sorts: call it on a finder that is not const")]] View<const Pair> pairs()
      const;
  /// Builds a binary tree that the finder owns.
  /// @throws std::length_error, std::bad_alloc; then there is no tree
  [[deprecated("use BoxTree::build")]] void buildTree(View<const Aabb> boxes);
  /// The tree of the last buildTree(). An update destroys it.
  [[deprecated("use BoxTree::query")]] Tree tree() const;

 private:
  // The blocks of the last update, for host/block_query.h. Valid until the next update() or
  // updateUnchanged(). Null if the update did not run on the host, or failed.
  friend const PackedBoxes* packedOf(const PairFinder& finder) { return finder.packed(); }
  const PackedBoxes* packed() const;
  // How often a GPU failed before its last pairs were copied (SpaceInfo::losses). When the number
  // has grown, a caller that records the changes must compare its pairs with pairs().
  friend std::size_t lossesOf(const PairFinder& finder) { return finder.losses(); }
  std::size_t losses() const;
  // update(), for a caller with SparseBits. Reading the bits takes time only for changed boxes.
  friend void updateChanged(PairFinder& finder, View<const Aabb> boxes, View<const Filter> filters,
                            const SparseBits& changed) {
    finder.updateChanged(boxes, filters, changed);
  }
  void updateChanged(View<const Aabb> boxes, View<const Filter> filters, const SparseBits& changed);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lbvh
