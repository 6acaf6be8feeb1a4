// SPDX-License-Identifier: Zlib
// A warp's pairs on their way to the list of all: gathered in shared memory, and written many at a
// time, so that one addition to the shared counter and a few whole lines serve them all.
#pragma once

#include <cstdint>

#include "broadphase/core/device_input.h"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Where pairs go. Each first box's pairs are counted, and each pair gets its place among them.
struct FoundPairs {
  View<Pair> room;
  std::uint64_t limit;                   ///< stop early beyond this count
  unsigned long long* count;             ///< may exceed the room
  PairRule rule;                         ///< which pairs count
  std::uint32_t* counts;                 ///< by box; null: nobody asks for places
  std::uint32_t* places;                 ///< by pair in the room: among its first box's pairs
  std::uint32_t* otherPlaces = nullptr;  ///< and among its second box's; null: not counted there
};

/// Pairs that a warp gathers.
inline constexpr std::uint32_t kStaged = 128;

/// @tparam kIsScene false: of the rule only filters count, pairs are always counted by their first
///   box, and by no other. That saves registers.
template <bool kIsScene>
class PairStage {
 public:
  __device__ PairStage(const FoundPairs& out, Pair (&stage)[kStaged]) : out_(out), stage_(stage) {}

  /// Makes room for `n` pairs of all lanes together, at most kStaged.
  __device__ void reserve(std::uint32_t n) {
    if (size_ + n > kStaged) flush();
  }
  /// The lane's part of what was reserved begins at `begin`.
  __device__ Pair* at(std::uint32_t begin) { return &stage_[size_ + begin]; }
  __device__ void close(std::uint32_t n) { size_ += n; }

  /// More pairs were found than the limit.
  __device__ bool isOver() const { return isOver_; }

  __device__ void flush() {
    __syncwarp();
    if (kIsScene ? !out_.rule.acceptsAll() : out_.rule.filters != nullptr) dropRefused();
    if (size_ != 0) write();
    size_ = 0;
    __syncwarp();
  }

 private:
  __device__ bool accepts(Pair pair) const {
    if constexpr (kIsScene) return out_.rule(pair);
    return shouldCollide(out_.rule.filters[pair.first], out_.rule.filters[pair.second]);
  }

  /// Keeps the pairs that count.
  __device__ void dropRefused() {
    std::uint32_t kept = 0;
    for (std::uint32_t begin = 0; begin < size_; begin += kWarp) {
      const bool isThere = begin + lane() < size_;
      const Pair pair = isThere ? stage_[begin + lane()] : Pair{};
      const bool keeps = isThere && accepts(pair);
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
      if (kIsScene && out_.counts == nullptr) continue;
      out_.places[at] = placeOf(pair.first, writing);
      if (kIsScene && out_.otherPlaces != nullptr)
        out_.otherPlaces[at] = placeOf(pair.second, writing);
    }
  }

  /// One addition for all of these lanes that have the same box: a hub's come together.
  __device__ std::uint32_t placeOf(std::uint32_t box, std::uint32_t lanes) {
    const std::uint32_t same = __match_any_sync(lanes, box);
    const std::uint32_t leader = lowestBit(same);
    std::uint32_t before = 0;
    if (lane() == leader) before = atomicAdd(&out_.counts[box], countBits(same));
    before = __shfl_sync(same, before, static_cast<int>(leader));
    return before + lanesBefore(same);
  }

  const FoundPairs& out_;
  Pair (&stage_)[kStaged];
  std::uint32_t size_ = 0;
  bool isOver_ = false;
};

}  // namespace lbvh
