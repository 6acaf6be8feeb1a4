// SPDX-License-Identifier: Zlib
// A warp's pairs on their way to the list of all: gathered in shared memory, and written many at a
// time, so that one addition to the shared counter and a few whole lines serve them all.
#pragma once

#include <cstdint>

#include "broadphase/cuda/leaf_blocks.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Where pairs go. Each first box's pairs are counted, and each pair gets its place among them.
struct FoundPairs {
  View<Pair> room;
  std::uint64_t limit;         ///< stop early beyond this count
  unsigned long long* count;   ///< may exceed the room
  View<const Filter> filters;  ///< by box, or empty: all pairs may collide
  std::uint32_t* counts;       ///< by box
  std::uint32_t* places;       ///< by pair in the room
};

class PairStage {
 public:
  static constexpr std::uint32_t kRoom = 128;

  __device__ PairStage(const FoundPairs& out, Pair (&stage)[kRoom]) : out_(out), stage_(stage) {}

  /// Makes room for `n` pairs of all lanes together, at most kRoom.
  __device__ void reserve(std::uint32_t n) {
    if (size_ + n > kRoom) flush();
  }
  /// The lane's part of what was reserved begins at `begin`.
  __device__ Pair* at(std::uint32_t begin) { return &stage_[size_ + begin]; }
  __device__ void close(std::uint32_t n) { size_ += n; }

  /// More pairs were found than the limit.
  __device__ bool isOver() const { return isOver_; }

  __device__ void flush() {
    __syncwarp();
    if (!out_.filters.empty()) dropFiltered();
    if (size_ != 0) write();
    size_ = 0;
    __syncwarp();
  }

 private:
  /// Keeps the pairs that may collide.
  __device__ void dropFiltered() {
    std::uint32_t kept = 0;
    for (std::uint32_t begin = 0; begin < size_; begin += kWarp) {
      const bool isThere = begin + lane() < size_;
      const Pair pair = isThere ? stage_[begin + lane()] : Pair{};
      const bool keeps = isThere && shouldCollide(out_.filters, pair.first, pair.second);
      const std::uint32_t votes = __ballot_sync(kAllLanes, keeps);
      __syncwarp();  // all have read what is written now
      if (keeps) stage_[kept + lanesBefore(votes)] = pair;
      kept += countBits(votes);
      __syncwarp();
    }
    size_ = kept;
  }

  __device__ void write() {
    unsigned long long begin = 0;
    if (lane() == 0) begin = atomicAdd(out_.count, static_cast<unsigned long long>(size_));
    begin = __shfl_sync(kAllLanes, begin, 0);
    isOver_ |= begin + size_ > out_.limit;
    for (std::uint32_t k = lane(); k - lane() < size_; k += kWarp) {
      const unsigned long long at = begin + k;
      const bool hasRoom = k < size_ && at < out_.room.size;
      const std::uint32_t writing = __ballot_sync(kAllLanes, hasRoom);
      if (!hasRoom) continue;
      const Pair pair = stage_[k];
      out_.room[at] = pair;
      out_.places[at] = placeOf(pair.first, writing);
    }
  }

  /// One addition for all of these lanes that have the same first box: a hub's come together.
  __device__ std::uint32_t placeOf(std::uint32_t first, std::uint32_t lanes) {
    const std::uint32_t same = __match_any_sync(lanes, first);
    const std::uint32_t leader = lowestBit(same);
    std::uint32_t before = 0;
    if (lane() == leader) before = atomicAdd(&out_.counts[first], countBits(same));
    before = __shfl_sync(same, before, static_cast<int>(leader));
    return before + lanesBefore(same);
  }

  const FoundPairs& out_;
  Pair (&stage_)[kRoom];
  std::uint32_t size_ = 0;
  bool isOver_ = false;
};

}  // namespace lbvh
