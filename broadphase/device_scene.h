// SPDX-License-Identifier: Zlib
/// @file
/// What a DevicePairFinder is asked and what it answers: boxes as engines keep them, which pairs
/// count, in what form they are wanted, and where the lists lie. Every pointer is into the memory
/// of the finder's space: a GPU's, or the host's. C++17, needs no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.h"

namespace lbvh {

/// The world of a box that is in all worlds.
inline constexpr std::uint32_t kAllWorlds = 0xFFFFFFFF;
/// The body of a box that belongs to none.
inline constexpr std::uint32_t kNoBody = 0xFFFFFFFF;

/// Three floats for each box, `stride` bytes from one box's to the next one's. The stride is a
/// multiple of 4 and at least 12.
struct Triples {
  const float* data = nullptr;             ///< the first box's; null: none
  std::size_t stride = 3 * sizeof(float);  ///< in bytes
};

/// The boxes of a search, and which pairs of them count. What is null is not there. A pair counts
/// if both boxes are in one world and their filters accept each other. They must be of two bodies,
/// one of them movable, and the pair not excluded.
struct DeviceScene {
  std::size_t boxes = 0;                 ///< how many the arrays hold; at most 2^30
  const std::uint32_t* count = nullptr;  ///< how many of them count; null: all

  Triples lower;  ///< the least x, y and z of each box
  Triples upper;  ///< the greatest

  const float* margins = nullptr;  ///< by box: how far its sides move out (in, if less than 0)
  Triples displacements;           ///< where each box goes: what it sweeps on the way counts as it

  const Filter* filters = nullptr;        ///< by box; null: all accept each other
  const std::uint32_t* bodies = nullptr;  ///< by box; boxes of one body do not pair, see kNoBody
  const std::uint8_t* movable = nullptr;  ///< by box; two with a 0 do not pair

  /// By box: less than `worldCount`, or kAllWorlds. Null: all are in world 0, which queries may
  /// name and whose pairs are counted first, even if `worldCount` is 0.
  const std::uint32_t* worlds = nullptr;
  std::uint32_t worldCount = 0;  ///< at most 2^24

  View<const Pair> excluded;  ///< sorted by (first, second), first < second; some may be twice

  /// A scene of packed boxes.
  static DeviceScene of(View<const Aabb> boxes, const Filter* filters = nullptr) {
    DeviceScene scene;
    scene.boxes = boxes.size;
    if (boxes.data != nullptr)
      scene.lower = {boxes.data->min, sizeof(Aabb)}, scene.upper = {boxes.data->max, sizeof(Aabb)};
    scene.filters = filters;
    return scene;
  }
};

/// How pairs are handed out. Each costs less than the next.
enum class PairForm {
  unsorted,    ///< each pair once, in no order
  sorted,      ///< each pair once, by (first, second)
  neighbours,  ///< for each box all its partners, ascending: each pair is in two lists
};

/// What is wanted of a search. Lists with null `data` lie in the finder's memory, where they stay
/// until its next search; others in the caller's, with room for `size` elements.
struct DeviceRequest {
  PairForm form = PairForm::sorted;  ///< of `pairs`, or of `offsets` and `neighbours`
  /// Also what differs from the last search with `changes`. Needs PairForm::sorted. All pairs are
  /// added if there was none; if it threw std::runtime_error or std::bad_alloc; if its pairs were
  /// cut, or it was stopped; and after a reserve() for such searches.
  bool changes = false;
  bool countsByWorld = false;  ///< also how many of the pairs each world has

  View<Pair> pairs;                ///< for PairForm::unsorted and sorted
  View<std::uint32_t> neighbours;  ///< for PairForm::neighbours: two elements a pair
  View<std::uint32_t> offsets;     ///< likewise: room for DeviceScene::boxes + 1
  View<Pair> added;                ///< with `changes`
  View<Pair> removed;              ///< likewise
  View<std::uint32_t> byWorld;     ///< with `countsByWorld`: room for DeviceScene::worldCount + 1
};

/// Bits of DeviceReport::errors.
enum DeviceError : std::uint32_t {
  kListIsCut = 1,             ///< the list has less room than pairs were found
  kAddedAreCut = 2,           ///< likewise the added pairs
  kRemovedAreCut = 4,         ///< likewise the removed ones
  kSearchStopped = 8,         ///< more than DeviceOptions::maxPairs: not all were counted
  kCountIsTooLarge = 16,      ///< `*count` exceeds `boxes`, which counted
  kWorldIsOutOfRange = 32,    ///< a box's or query's world is: it overlapped nothing
  kExcludedAreUnsorted = 64,  ///< some of those pairs may have been found
  kBoxIsNan = 128,            ///< a box, margin or displacement is: the box overlapped nothing
};

/// What a search tells. Written last, in the order of the stream.
struct DeviceReport {
  std::uint64_t pairs;    ///< found, or hits of queries: how much room a whole list needs
  std::uint64_t added;    ///< likewise, with DeviceRequest::changes
  std::uint64_t removed;  ///< likewise
  std::uint32_t boxes;    ///< how many counted; of queries, how many there were
  std::uint32_t errors;   ///< DeviceError bits; 0: every list is whole and right
};

/// Where the answers of a search are. Sizes are room; DeviceReport has the counts. Of a list that
/// is cut, there are as many elements as it has room for, and of `neighbours` up to the last
/// offset: which ones is unspecified, and so is what was counted by world or differs then.
struct DeviceLists {
  View<const Pair> pairs;                ///< of PairForm::unsorted and sorted
  View<const std::uint32_t> offsets;     ///< partners of box i: neighbours[k],
  View<const std::uint32_t> neighbours;  ///< offsets[i] <= k < offsets[i + 1]
  View<const Pair> added;                ///< sorted
  View<const Pair> removed;              ///< sorted
  View<const std::uint32_t>
      byWorld;  ///< pairs of each world; last, if there are worlds: of two boxes in all
  const DeviceReport* report = nullptr;  ///< in the finder's memory
};

}  // namespace lbvh
