// SPDX-License-Identifier: Zlib
// Divides the boxes into tiles, one for each thread block of compareListsKernel. Most tiles have 64
// boxes. A hub is a box with a long list, which takes a thread block as much time as hundreds of
// other boxes. Each hub gets its own tile, so that neighbouring hubs, such as the walls of a scene,
// are compared in parallel.
#pragma once

#include <cstdint>

#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Up to kMaxHubs hubs, unsorted. The caller must clear the words before a kernel adds hubs.
struct HubList {
  static constexpr std::uint32_t kMaxHubs = 8;  ///< further hubs get no tiles of their own
  static constexpr std::uint32_t kFrom = 257;   ///< minimum length of a hub's list

  /// Word 0 is the number of hubs, which may exceed kMaxHubs. The other words are the box indices
  /// of the first kMaxHubs hubs. Null: there are no hubs.
  unsigned long long* words = nullptr;

  static constexpr std::uint32_t kWords = 1 + kMaxHubs;
  /// The largest number of tiles that hubs add: each hub splits a tile into three parts.
  static constexpr std::uint32_t kMoreTiles = 2 * kMaxHubs;

  __device__ void add(std::uint32_t box) const {
    if (words == nullptr) return;
    const unsigned long long place = atomicAdd(words, 1ull);
    if (place < kMaxHubs) words[1 + place] = box;
  }
  __device__ std::uint32_t count() const {
    if (words == nullptr) return 0;
    return static_cast<std::uint32_t>(words[0] < kMaxHubs ? words[0] : kMaxHubs);
  }
  __device__ std::uint32_t box(std::uint32_t k) const {
    return static_cast<std::uint32_t>(words[1 + k]);
  }
};

/// The boxes [begin, end) of a tile.
struct ListTileRange {
  std::uint32_t begin, end;
  bool isLast;  ///< whether later tiles have no boxes
};

/// Finds where tiles begin: at each multiple of 64, at each hub, and at the box after each hub. Two
/// equal beginnings make an empty tile. All lanes of a warp must call the functions. Each lane
/// holds at most one hub.
class ListTiles {
 public:
  static constexpr std::uint32_t kBoxes = 64;  ///< maximum number of boxes in a tile

  /// The boxes of a tile.
  /// @param count number of hubs
  /// @param boxes number of all boxes
  __device__ static ListTileRange range(std::uint32_t number, const HubList& hubs,
                                        std::uint32_t count, std::uint32_t boxes) {
    std::uint32_t begin = number * kBoxes, end = begin + kBoxes;
    if (count != 0) {
      const ListTiles tiles(hubs, count);
      begin = tiles.begin(number);
      end = tiles.begin(number + 1);
    }
    return {begin, end, end >= boxes};
  }

 private:
  __device__ ListTiles(const HubList& hubs, std::uint32_t count) {
    const bool isHub = lane() < count;
    const std::uint32_t box = isHub ? hubs.box(lane()) : kNullIndex;
    bool follows = false;  // whether the previous box is a hub, which adds the beginning `box`
    for (std::uint32_t k = 0; k < count; ++k) follows |= __shfl_sync(kAllLanes, box, k) + 1 == box;
    at_[0] = isHub && !follows ? box : kNullIndex;
    at_[1] = isHub ? box + 1 : kNullIndex;
    number_[0] = at_[0] / kBoxes + 1;
    number_[1] = at_[1] / kBoxes + 1;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t other[] = {__shfl_sync(kAllLanes, at_[0], k),
                                     __shfl_sync(kAllLanes, at_[1], k)};
      number_[0] += (other[0] < at_[0]) + (other[1] < at_[0]);
      number_[1] += (other[0] < at_[1]) + (other[1] < at_[1]);
    }
  }

  __device__ std::uint32_t begin(std::uint32_t number) const {
    std::uint32_t before = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool isThere = at_[i] != kNullIndex;
      const unsigned here = __ballot_sync(kAllLanes, isThere && number_[i] == number);
      if (here != 0) return __shfl_sync(kAllLanes, at_[i], static_cast<int>(lowestBit(here)));
      before += countBits(__ballot_sync(kAllLanes, isThere && number_[i] < number));
    }
    return (number - before) * kBoxes;
  }

  std::uint32_t at_[2];      ///< tile starts that the lane's hub adds; kNullIndex: none
  std::uint32_t number_[2];  ///< the numbers of the tiles that start at `at_`
};

}  // namespace lbvh
