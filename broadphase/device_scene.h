// SPDX-License-Identifier: Zlib
/// @file
/// The input and output of a DevicePairFinder: boxes in an engine's own layout, rules for pairs,
/// layouts of pairs, and the lists. Every pointer points to the finder's memory space: a GPU's or
/// the host's. C++17, needs no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.h"

namespace lbvh {

/// The world index of a box that is in all worlds.
inline constexpr std::uint32_t kAllWorlds = 0xFFFFFFFF;
/// The body index of a box that belongs to no body.
inline constexpr std::uint32_t kNoBody = 0xFFFFFFFF;

/// Vectors of three floats, one for each box, `stride` bytes apart. The stride must be a multiple
/// of 4 and at least 12.
struct StridedVec3 {
  const float* data = nullptr;             ///< the first box's vector; null: no array
  std::size_t stride = 3 * sizeof(float);  ///< in bytes
};

/// The boxes of a search, and the rules for pairs. An absent array is null. Two overlapping boxes
/// are a pair if they share a world and their filters accept each other. They must also belong to
/// different bodies, at least one must be movable, and the pair must not be excluded.
struct DeviceScene {
  std::size_t boxCapacity = 0;              ///< number of boxes that the arrays hold; at most 2^30
  const std::uint32_t* boxCount = nullptr;  ///< number of boxes in use; null: boxCapacity

  StridedVec3 min;  ///< minimum x, y and z of each box
  StridedVec3 max;  ///< maximum x, y and z of each box

  const float* margins = nullptr;  ///< by box: how far each side moves outward; inward if negative
  StridedVec3 displacements;       ///< by box: its motion, by which the box is extended

  const Filter* filters = nullptr;        ///< by box; null: all boxes accept each other
  const std::uint32_t* bodies = nullptr;  ///< by box; boxes of one body do not pair, see kNoBody
  const std::uint8_t* movable = nullptr;  ///< by box; two boxes with a 0 do not pair

  /// By box: the index of its world, less than `worldCount`, or kAllWorlds. Null: all boxes are in
  /// world 0, even if `worldCount` is 0. Queries may then name world 0, and byWorld[0] counts its
  /// pairs.
  const std::uint32_t* worlds = nullptr;
  std::uint32_t worldCount = 0;  ///< at most 2^24

  /// Pairs that are never reported, sorted by (first, second), with first < second. Duplicates are
  /// allowed.
  View<const Pair> excluded;

  /// A scene of packed boxes.
  static DeviceScene of(View<const Aabb> boxes, const Filter* filters = nullptr) {
    DeviceScene scene;
    scene.boxCapacity = boxes.size();
    if (boxes.data() != nullptr)
      scene.min = {boxes.data()->min, sizeof(Aabb)}, scene.max = {boxes.data()->max, sizeof(Aabb)};
    scene.filters = filters;
    return scene;
  }
};

/// How pairs are laid out, in order of increasing cost.
enum class PairLayout {
  unsorted,    ///< each pair once, in no order
  sorted,      ///< each pair once, by (first, second)
  neighbours,  ///< for each box all its partners, ascending: each pair is in two lists
};

/// The results that a search should return. A list with null `data` is put into the finder's
/// memory, and is valid until the finder's next search. Any other list is the caller's memory for
/// `size` elements.
struct DeviceRequest {
  PairLayout layout = PairLayout::sorted;  ///< layout of `pairs`, or of `offsets` and `neighbours`
  /// Also report the pairs added and removed since the previous search with `changes`. Needs
  /// PairLayout::sorted. All pairs are reported as added if there was no such search, or if it
  /// threw std::runtime_error or std::bad_alloc. They are also reported as added if its pairs were
  /// truncated, if it was stopped, or after a reserve() for searches with `changes`.
  bool changes = false;
  bool countsByWorld = false;  ///< also count the pairs of each world

  View<Pair> pairs;                ///< for PairLayout::unsorted and sorted
  View<std::uint32_t> neighbours;  ///< for PairLayout::neighbours: two elements for each pair
  View<std::uint32_t> offsets;     ///< for PairLayout::neighbours: boxCapacity + 1 elements
  View<Pair> added;                ///< with `changes`
  View<Pair> removed;              ///< with `changes`
  View<std::uint32_t> byWorld;     ///< with `countsByWorld`: DeviceScene::worldCount + 1 elements
};

/// Errors in a search or in a batch of queries: the bits of a report's `errors`.
enum class DeviceError : std::uint32_t {
  pairsTruncated = 1,    ///< more pairs or hits were found than the list can hold
  addedTruncated = 2,    ///< more pairs were added than the list can hold
  removedTruncated = 4,  ///< more pairs were removed than the list can hold
  /// There are more than DeviceOptions::maxPairs results: not all were counted.
  searchStopped = 8,
  boxCountTooLarge = 16,  ///< `*boxCount` exceeds `boxCapacity`, which was used instead
  worldOutOfRange = 32,   ///< a box or query has an unknown world: it overlapped nothing
  excludedUnsorted = 64,  ///< `excluded` is not sorted: some of its pairs may have been found
  nanBox = 128,           ///< a box, margin or displacement has a NaN: the box overlapped nothing
};

/// The bit of an error.
GPULBVH_HD constexpr std::uint32_t bitOf(DeviceError error) {
  return static_cast<std::uint32_t>(error);
}

/// The counts and errors of a search. They are the last result that the search writes.
struct DeviceReport {
  std::uint64_t pairs;    ///< pairs found: the capacity that a complete list needs
  std::uint64_t added;    ///< added pairs, with DeviceRequest::changes
  std::uint64_t removed;  ///< removed pairs, with DeviceRequest::changes
  std::uint32_t boxes;    ///< number of boxes that were in use
  std::uint32_t errors;   ///< DeviceError bits; 0: every list is complete and correct

  /// Whether the report has this error.
  GPULBVH_HD bool has(DeviceError error) const { return (errors & bitOf(error)) != 0; }
};

/// Where the results of a search are. The sizes of the views are capacities; DeviceReport has the
/// counts.
///
/// A truncated list is filled to its capacity, except `neighbours`, which is filled up to the last
/// offset. Which pairs it holds is unspecified. The counts by world and the changes are then
/// unspecified, too.
struct DeviceLists {
  View<const Pair> pairs;                ///< with PairLayout::unsorted and sorted
  View<const std::uint32_t> offsets;     ///< by box: where its partners begin; one more for the end
  View<const std::uint32_t> neighbours;  ///< partners of box i: [offsets[i], offsets[i + 1])
  View<const Pair> added;                ///< sorted
  View<const Pair> removed;              ///< sorted
  /// Number of pairs of each world. If the scene has worlds, the last element counts the pairs of
  /// two boxes that are both in all worlds.
  View<const std::uint32_t> byWorld;
  const DeviceReport* report = nullptr;  ///< in the finder's memory
};

}  // namespace lbvh
