// Stages 6 and 7 on a GPU in one kernel: sorts each box's list of pairs, and compares it with the
// box's list of the step before. A block takes the lists of 64 consecutive boxes, in rounds that
// fit its shared memory; most blocks need one. A list that does not fit has a round for itself, see
// compare_hub.cuh. Added and removed pairs leave in runs of whole lines, for they cross the bus.
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "broadphase/cuda/compare_hub.cuh"
#include "broadphase/cuda/list_comparison.cuh"
#include "broadphase/cuda/look_back.cuh"
#include "broadphase/cuda/sort_network.cuh"

namespace lbvh {

/// Boxes [begin, end) of a tile.
struct Round {
  std::uint32_t begin, end;
  bool isHub;  ///< of one box
};

struct TileMemory {
  static constexpr std::uint32_t kBoxes = ListComparison::kBoxes;
  static constexpr std::uint32_t kRoom = 1024;    ///< pairs in a round, new ones and old ones
  static constexpr std::uint32_t kLongest = 256;  ///< a longer list has a round for itself

  using Scan = cub::BlockScan<std::uint32_t, kThreads>;

  std::uint32_t shared;
  unsigned long long before;
  std::uint32_t fresh[kBoxes + 1], old[kBoxes + 1];  ///< where lists begin
  typename Scan::TempStorage scan;
  union {
    struct {
      std::uint32_t unsorted[kRoom];  ///< later the added ones
      std::uint32_t sorted[kRoom];
      std::uint32_t old[kRoom];
      std::uint32_t removed[kRoom];
      std::uint8_t ofSorted[kRoom], ofAdded[kRoom], ofRemoved[kRoom];  ///< boxes in the tile
    } pairs;
    HubMemory hub;
  };
};

class ListTile {
 public:
  static constexpr std::uint32_t kBoxes = TileMemory::kBoxes, kRoom = TileMemory::kRoom;

  __device__ ListTile(const ListComparison& in, TileMemory& memory, std::uint32_t tile)
      : in_(in), memory_(memory), firstBox_(tile * kBoxes) {
    for (std::uint32_t i = threadIdx.x; i <= kBoxes; i += kThreads) {
      memory.fresh[i] = in.fresh.begin(firstBox_ + i);
      memory.old[i] = in.old.begin(firstBox_ + i);
    }
    __syncthreads();
  }

  /// Sorts the lists. @return how many pairs are added and removed
  __device__ DeltaSum sortAndCount() {
    DeltaSum sum{};
    for (std::uint32_t begin = 0; begin < kBoxes; begin = round_.end) {
      round_ = roundFrom(begin);
      ++rounds_;
      if (round_.isHub) {
        sum += hub().compare(in_.sorts(), nullptr);
      } else {
        staged_ = compareRound();
        if (in_.sorts()) writeSorted();
        sum += staged_;
      }
    }
    return sum;
  }

  /// Writes the pairs that are added and removed to their places in the lists of all tiles. What
  /// one round has found is still there; several are done again.
  __device__ void writeLists(DeltaSum place) {
    if (rounds_ == 1 && !round_.isHub) return writeStaged(place);
    for (std::uint32_t begin = 0; begin < kBoxes; begin = round_.end) {
      round_ = roundFrom(begin);
      if (round_.isHub) {
        place += hub().compare(false, &place);
      } else {
        staged_ = compareRound();
        writeStaged(place);
        place += staged_;
      }
    }
  }

 private:
  __device__ HubComparison hub() const { return {in_, memory_.hub, firstBox_ + round_.begin}; }

  /// As many boxes as fit, or one that does not.
  __device__ Round roundFrom(std::uint32_t begin) {
    const std::uint32_t box = threadIdx.x;
    bool fits = true;
    if (box >= begin && box < kBoxes) {
      const auto isIn = [&](const std::uint32_t(&offsets)[kBoxes + 1]) {
        return offsets[box + 1] - offsets[box] <= TileMemory::kLongest &&
               offsets[box + 1] - offsets[begin] <= kRoom;
      };
      fits = isIn(memory_.fresh) && isIn(memory_.old);
    }
    if (__syncthreads_and(fits)) return {begin, kBoxes, false};
    if (threadIdx.x == 0) memory_.shared = kBoxes;
    __syncthreads();
    if (!fits) atomicMin(&memory_.shared, box);
    __syncthreads();
    const std::uint32_t end = memory_.shared;
    __syncthreads();
    return end > begin ? Round{begin, end, false} : Round{begin, begin + 1, true};
  }

  __device__ DeltaSum compareRound() {
    __syncthreads();  // the round before may still be read
    load();
    __syncthreads();
    sortLists();
    __syncthreads();
    const std::uint32_t found = isBoxThread() ? markChanges() : 0;
    std::uint32_t before = 0, all = 0;
    TileMemory::Scan(memory_.scan).ExclusiveSum(found, before, all);
    if (found != 0) stage(before);
    __syncthreads();
    return DeltaSum::of(all & 0xFFFF, all >> 16);
  }

  __device__ std::uint32_t freshSize() const {
    return memory_.fresh[round_.end] - memory_.fresh[round_.begin];
  }

  __device__ void load() {
    auto& pairs = memory_.pairs;
    const std::uint32_t fresh = memory_.fresh[round_.begin], size = freshSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads)
      pairs.unsorted[i] = in_.freshSecond(fresh + i);
    const std::uint32_t old = memory_.old[round_.begin], olds = memory_.old[round_.end] - old;
    for (std::uint32_t i = threadIdx.x; i < olds; i += kThreads)
      pairs.old[i] = in_.oldSecond(old + i);
  }

  /// Threads have a box each, of the round's.
  __device__ bool isBoxThread() const {
    return threadIdx.x >= round_.begin && threadIdx.x < round_.end;
  }
  __device__ std::uint32_t freshBegin(std::uint32_t box) const {
    return memory_.fresh[box] - memory_.fresh[round_.begin];
  }
  __device__ std::uint32_t oldBegin(std::uint32_t box) const {
    return memory_.old[box] - memory_.old[round_.begin];
  }

  static constexpr std::uint32_t kShort = 16;  ///< what registers hold of a list

  __device__ void sortLists() {
    if (threadIdx.x >= kBoxes) return;
    const std::uint32_t box = threadIdx.x;
    const std::uint32_t begin = isBoxThread() ? freshBegin(box) : 0;
    const std::uint32_t size = isBoxThread() ? freshBegin(box + 1) - begin : 0;
    for (std::uint32_t i = 0; i < size; ++i)
      memory_.pairs.ofSorted[begin + i] = static_cast<std::uint8_t>(box);
    constexpr unsigned kWarp = 0xFFFFFFFF;
    if (__any_sync(kWarp, size > 8))
      sortShort<kShort>(begin, size);
    else
      sortShort<8>(begin, size);
    for (unsigned rest = __ballot_sync(kWarp, size > kShort); rest != 0; rest &= rest - 1) {
      const int lane = __ffs(static_cast<int>(rest)) - 1;
      sortByCounting(__shfl_sync(kWarp, begin, lane), __shfl_sync(kWarp, size, lane));
    }
  }

  template <int kSize>
  __device__ void sortShort(std::uint32_t begin, std::uint32_t size) {
    if (size > kSize) size = 0;
    std::uint32_t list[kSize];
#pragma unroll
    for (std::uint32_t i = 0; i < kSize; ++i)
      list[i] = i < size ? memory_.pairs.unsorted[begin + i] : kNullIndex;
    sortInRegisters(list);
#pragma unroll
    for (std::uint32_t i = 0; i < kSize; ++i)
      if (i < size) memory_.pairs.sorted[begin + i] = list[i];
  }

  /// A warp one list: no two of its numbers are equal, so each has its own place.
  __device__ void sortByCounting(std::uint32_t begin, std::uint32_t size) {
    const std::uint32_t* list = &memory_.pairs.unsorted[begin];
    for (std::uint32_t i = threadIdx.x % 32; i < size; i += 32) {
      std::uint32_t place = 0;
      for (std::uint32_t k = 0; k < size; ++k) place += list[k] < list[i];
      memory_.pairs.sorted[begin + place] = list[i];
    }
  }

  /// Marks what differs between a box's two lists. @return how many: added in the low half
  __device__ std::uint32_t markChanges() {
    auto& pairs = memory_.pairs;
    const std::uint32_t box = threadIdx.x;
    std::uint32_t fresh = freshBegin(box), old = oldBegin(box), found = 0;
    const std::uint32_t freshEnd = freshBegin(box + 1), oldEnd = oldBegin(box + 1);
    const bool isGone = in_.isRemoved(firstBox_ + box);
    while (fresh < freshEnd || old < oldEnd) {
      const std::uint32_t a = fresh < freshEnd ? pairs.sorted[fresh] : kNullIndex;
      const std::uint32_t b = old < oldEnd ? pairs.old[old] : kNullIndex;
      const std::uint32_t oldSecond = old < oldEnd ? b & ~kDoesNotCount : kNullIndex;
      const bool takesFresh = a <= oldSecond, takesOld = oldSecond <= a;
      const bool oldCounts = takesOld && !isGone && b == oldSecond;
      if (takesFresh && !oldCounts) {
        pairs.sorted[fresh] = a | kIsChange;
        ++found;
      }
      if (!takesFresh && oldCounts) {
        pairs.old[old] = b | kIsChange;
        found += 1u << 16;
      }
      fresh += takesFresh;
      old += takesOld;
    }
    return found;
  }

  /// @param before how many are staged by the boxes before this one
  __device__ void stage(std::uint32_t before) {
    auto& pairs = memory_.pairs;
    const std::uint32_t box = threadIdx.x;
    const auto gather = [&](const std::uint32_t* list, std::uint32_t begin, std::uint32_t end,
                            std::uint32_t place, std::uint32_t* staged, std::uint8_t* of) {
      for (std::uint32_t i = begin; i < end; ++i) {
        if ((list[i] & kIsChange) == 0) continue;
        staged[place] = list[i] & ~(kIsChange | kDoesNotCount);
        of[place++] = static_cast<std::uint8_t>(box);
      }
    };
    gather(pairs.sorted, freshBegin(box), freshBegin(box + 1), before & 0xFFFF, pairs.unsorted,
           pairs.ofAdded);
    gather(pairs.old, oldBegin(box), oldBegin(box + 1), before >> 16, pairs.removed,
           pairs.ofRemoved);
  }

  __device__ void writeSorted() const {
    const auto& pairs = memory_.pairs;
    Pair* out = in_.sortedPairs + memory_.fresh[round_.begin];
    const std::uint32_t size = freshSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads)
      out[i] = {firstBox_ + pairs.ofSorted[i], pairs.sorted[i] & ~kIsChange};
  }

  __device__ void writeStaged(DeltaSum place) const {
    const auto& pairs = memory_.pairs;
    for (std::uint32_t i = threadIdx.x; i < staged_.added(); i += kThreads)
      in_.put(in_.added, place.added() + i, {firstBox_ + pairs.ofAdded[i], pairs.unsorted[i]});
    for (std::uint32_t i = threadIdx.x; i < staged_.removed(); i += kThreads)
      in_.put(in_.removed, place.removed() + i, {firstBox_ + pairs.ofRemoved[i], pairs.removed[i]});
  }

  const ListComparison& in_;
  TileMemory& memory_;
  const std::uint32_t firstBox_;
  Round round_{};
  std::uint32_t rounds_ = 0;
  DeltaSum staged_{};  ///< of the last round
};

static __global__ void __launch_bounds__(kThreads) compareListsKernel(ListComparison in) {
  __shared__ TileMemory memory;
  const std::uint32_t number = takeTile(in.chain, memory.shared);
  ListTile tile(in, memory, number);
  const DeltaSum own = tile.sortAndCount();
  if (threadIdx.x < 32) {
    const unsigned long long before = sumOfTilesBefore(in.chain, number, own.both);
    if (threadIdx.x == 0) memory.before = before;
  }
  __syncthreads();
  const DeltaSum place{memory.before};
  tile.writeLists(place);
  if (number + 1 == gridDim.x) in.finish(DeltaSum{place.both + own.both});
}

}  // namespace lbvh
