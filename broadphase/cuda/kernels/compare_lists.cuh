// SPDX-License-Identifier: Zlib
// Stages 6 and 7 on a GPU in one kernel. It sorts each box's list of pairs, and compares it with
// the box's list of the previous step. A thread block takes the lists of up to 64 consecutive boxes
// (list_tiles.cuh), in rounds that fit in its shared memory. Most blocks need one round. A long
// list gets its own round (compare_hub.cuh). The stores of added and removed pairs are coalesced,
// because these pairs cross the bus.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/compare_hub.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"

namespace lbvh {

// Batcher's odd-even merge sort of up to kShort numbers in registers. All comparisons are known at
// compile time. So the lanes of a warp do not diverge, and all indices are constant.
namespace sort_network {

template <int kSize, int kI, int kDistance, int kBlock>
__device__ inline void compare(std::uint32_t (&x)[kSize]) {
  if constexpr (kI / (2 * kBlock) == (kI + kDistance) / (2 * kBlock)) {
    const std::uint32_t low = min(x[kI], x[kI + kDistance]);
    x[kI + kDistance] = max(x[kI], x[kI + kDistance]);
    x[kI] = low;
  }
}

/// Compares x[i] with x[i + distance], for every second run of `distance` numbers.
template <int kSize, int kI, int kDistance, int kBlock>
__device__ inline void pass(std::uint32_t (&x)[kSize]) {
  if constexpr (kI + kDistance < kSize) {
    compare<kSize, kI, kDistance, kBlock>(x);
    constexpr bool endsRun = (kI - kDistance % kBlock) % kDistance == kDistance - 1;
    pass<kSize, kI + 1 + (endsRun ? kDistance : 0), kDistance, kBlock>(x);
  }
}

template <int kSize, int kDistance, int kBlock>
__device__ inline void merge(std::uint32_t (&x)[kSize]) {
  pass<kSize, kDistance % kBlock, kDistance, kBlock>(x);
  if constexpr (kDistance > 1) merge<kSize, kDistance / 2, kBlock>(x);
}

template <int kSize, int kBlock>
__device__ inline void mergeSort(std::uint32_t (&x)[kSize]) {
  if constexpr (kBlock < kSize) {
    merge<kSize, kBlock, kBlock>(x);
    mergeSort<kSize, 2 * kBlock>(x);
  }
}

}  // namespace sort_network

/// Sorts in ascending order. @tparam kSize a power of two
template <int kSize>
__device__ inline void sortInRegisters(std::uint32_t (&x)[kSize]) {
  sort_network::mergeSort<kSize, 1>(x);
}

/// The boxes [begin, end) of a tile, whose lists are compared at the same time.
struct Round {
  std::uint32_t begin, end;
  bool isHub;                  ///< the round has one box, with a long list
  std::uint32_t current, old;  ///< where the round's lists begin
};

struct TileMemory {
  static constexpr std::uint32_t kBoxes = ListTiles::kBoxes;
  static constexpr std::uint32_t kWords = 32;  ///< one for each lane of a warp
  /// Maximum number of new pairs in a round, and also of old pairs.
  static constexpr std::uint32_t kCapacity = 32 * kWords;

  std::uint32_t shared;
  std::uint32_t boxes;  ///< number of boxes of the tile
  bool isLast;
  unsigned long long before;
  std::uint32_t current[kBoxes + 1], old[kBoxes + 1];  ///< by box: where its list begins
  std::uint32_t changes[2];       ///< numbers of added and removed pairs in a round
  std::uint32_t isAdded[kWords];  ///< one bit for each pair in `sorted`
  /// One bit for each pair in `old`: set if the pair is not removed.
  std::uint32_t isDone[kWords];
  /// By box: whether a hub has changes; if not, writeLists() skips it.
  bool isHubChanged[kBoxes];
  union {
    struct {
      std::uint32_t unsorted[kCapacity], sorted[kCapacity], old[kCapacity];
      std::uint8_t ofCurrent[kCapacity], ofOld[kCapacity];  ///< first boxes, as indices in the tile
      /// Indices of added pairs; indices of removed pairs.
      std::uint16_t changes[2][kCapacity];
    } pairs;
    HubMemory hub;
  };
};

class ListTile {
 public:
  static constexpr std::uint32_t kBoxes = TileMemory::kBoxes, kCapacity = TileMemory::kCapacity;

  __device__ ListTile(const ListComparison& in, TileMemory& memory, const ListTileRange& range)
      : in_(in), memory_(memory), firstBox_(range.begin) {
    const std::uint32_t box = threadIdx.x;
    if (box == 0) {
      memory.boxes = range.end - range.begin;
      memory.isLast = range.isLast;
    }
    if (box <= range.end - range.begin) {
      memory.current[box] = in.current.begin(firstBox_ + box);
      memory.old[box] = in.old.begin(firstBox_ + box);
    }
    __syncthreads();
  }

  /// Sorts the lists. @return how many pairs are added and removed
  __device__ DeltaSum sortAndCount() {
    DeltaSum sum{};
    for (std::uint32_t begin = 0; begin < memory_.boxes; begin = round_.end) {
      round_ = roundFrom(begin);
      ++rounds_;
      if (round_.isHub) {
        const DeltaSum ofHub = hub().compare(in_.sorts(), nullptr);
        if (threadIdx.x == 0) memory_.isHubChanged[begin] = ofHub.both != 0;
        sum += ofHub;
      } else {
        staged_ = compareRound();
        if (in_.sorts()) writeSorted();
        sum += staged_;
      }
    }
    return sum;
  }

  /// Writes this tile's added and removed pairs to their places in the two lists that all tiles
  /// share. If there was a single round, its result is still in shared memory. Otherwise all rounds
  /// are computed again.
  __device__ void writeLists(DeltaSum place) {
    if (rounds_ == 1 && !round_.isHub) return writeStaged(place);
    for (std::uint32_t begin = 0; begin < memory_.boxes; begin = round_.end) {
      round_ = roundFrom(begin);
      if (round_.isHub) {
        if (memory_.isHubChanged[begin]) place += hub().compare(false, &place, rounds_ == 1);
      } else {
        staged_ = compareRound();
        writeStaged(place);
        place += staged_;
      }
    }
  }

 private:
  __device__ HubComparison hub() const { return {in_, memory_.hub, firstBox_ + round_.begin}; }

  /// The round that begins at box `begin`. It has as many boxes as fit, up to the next hub, or it
  /// has only one hub. On return, no thread still reads the previous round.
  __device__ Round roundFrom(std::uint32_t begin) {
    const std::uint32_t box = threadIdx.x;
    bool fits = true;
    if (box >= begin && box < memory_.boxes) {
      const auto isIn = [&](const std::uint32_t(&offsets)[kBoxes + 1]) {
        return offsets[box + 1] - offsets[box] < HubList::kFrom &&
               offsets[box + 1] - offsets[begin] <= kCapacity;
      };
      fits = isIn(memory_.current) && isIn(memory_.old);
    }
    if (threadIdx.x < TileMemory::kWords)
      memory_.isAdded[threadIdx.x] = memory_.isDone[threadIdx.x] = 0;
    const std::uint32_t current = memory_.current[begin], old = memory_.old[begin];
    if (__syncthreads_and(fits)) return {begin, memory_.boxes, false, current, old};
    if (threadIdx.x == 0) memory_.shared = memory_.boxes;
    __syncthreads();
    if (!fits) atomicMin(&memory_.shared, box);
    __syncthreads();
    const std::uint32_t end = memory_.shared;
    return end > begin ? Round{begin, end, false, current, old}
                       : Round{begin, begin + 1, true, current, old};
  }

  __device__ DeltaSum compareRound() {
    load();
    __syncthreads();
    sortLists();
    __syncthreads();
    match();
    __syncthreads();
    listChanges();
    __syncthreads();
    return DeltaSum::of(memory_.changes[0], memory_.changes[1]);
  }

  __device__ std::uint32_t currentSize() const { return currentBegin(round_.end); }
  __device__ std::uint32_t oldSize() const { return oldBegin(round_.end); }
  __device__ std::uint32_t currentBegin(std::uint32_t box) const {
    return memory_.current[box] - round_.current;
  }
  __device__ std::uint32_t oldBegin(std::uint32_t box) const {
    return memory_.old[box] - round_.old;
  }

  __device__ void load() {
    auto& pairs = memory_.pairs;
    const std::uint32_t freshs = currentSize(), olds = oldSize();
    for (std::uint32_t i = threadIdx.x; i < freshs; i += kThreads)
      pairs.unsorted[i] = in_.currentSecond(round_.current + i);
    for (std::uint32_t i = threadIdx.x; i < olds; i += kThreads) {
      const Pair pair = in_.old.pairs[round_.old + i];
      pairs.old[i] = pair.second;
      pairs.ofOld[i] = static_cast<std::uint8_t>(pair.first - firstBox_);
      if (!in_.counts(pair)) atomicOr(&memory_.isDone[i / 32], 1u << i % 32);
    }
  }

  static constexpr std::uint32_t kShort = 16;  ///< longest list that is sorted in registers

  __device__ void sortLists() {
    static_assert(kThreads == 2 * kBoxes, "half of the threads sort, the others write ofCurrent");
    const std::uint32_t box = threadIdx.x % kBoxes;
    const bool isOfRound = box >= round_.begin && box < round_.end;
    const std::uint32_t begin = isOfRound ? currentBegin(box) : 0;
    const std::uint32_t size = isOfRound ? currentBegin(box + 1) - begin : 0;
    if (threadIdx.x >= kBoxes) {
      for (std::uint32_t i = 0; i < size; ++i)
        memory_.pairs.ofCurrent[begin + i] = static_cast<std::uint8_t>(box);
      return;
    }
    if (__any_sync(kAllLanes, size > 8))
      sortShort<kShort>(begin, size);
    else
      sortShort<8>(begin, size);
    for (unsigned rest = __ballot_sync(kAllLanes, size > kShort); rest != 0; rest &= rest - 1) {
      const auto next = static_cast<int>(lowestBit(rest));
      sortByCounting(__shfl_sync(kAllLanes, begin, next), __shfl_sync(kAllLanes, size, next));
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

  /// Sorts one list with one warp. No two numbers are equal, so each has a different position.
  __device__ void sortByCounting(std::uint32_t begin, std::uint32_t size) {
    const std::uint32_t* list = &memory_.pairs.unsorted[begin];
    for (std::uint32_t i = lane(); i < size; i += 32) {
      std::uint32_t place = 0;
      for (std::uint32_t k = 0; k < size; ++k) place += list[k] < list[i];
      memory_.pairs.sorted[begin + place] = list[i];
    }
  }

  /// One thread for each new pair searches for it in the old list.
  __device__ void match() {
    auto& pairs = memory_.pairs;
    const std::uint32_t size = currentSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads) {
      const std::uint32_t box = pairs.ofCurrent[i];
      if (!takeOld(pairs.sorted[i], oldBegin(box), oldBegin(box + 1)))
        atomicOr(&memory_.isAdded[i / 32], 1u << i % 32);
    }
  }

  /// Marks an old pair as done.
  /// @return whether the pair is in the old list and was not done before
  __device__ bool takeOld(std::uint32_t second, std::uint32_t begin, std::uint32_t end) {
    auto& pairs = memory_.pairs;
    const std::uint32_t last = end;
    while (begin < end) {
      const std::uint32_t middle = (begin + end) / 2;
      if (pairs.old[middle] < second)
        begin = middle + 1;
      else
        end = middle;
    }
    if (begin == last || pairs.old[begin] != second) return false;
    const std::uint32_t bit = 1u << begin % 32;
    return (atomicOr(&memory_.isDone[begin / 32], bit) & bit) == 0;
  }

  /// One warp lists the added pairs, another the removed ones. Each lane has one word of bits.
  __device__ void listChanges() {
    auto& pairs = memory_.pairs;
    const std::uint32_t list = threadIdx.x / 32, rest = oldSize() - 32 * lane();
    if (list > 1) return;
    std::uint32_t bits = memory_.isAdded[lane()];
    if (list == 1) {
      const bool isThere = 32 * lane() < oldSize();
      bits = !isThere ? 0 : ~memory_.isDone[lane()] & (rest < 32 ? (1u << rest) - 1 : ~0u);
    }
    const std::uint32_t end = sumUpToLane(countBits(bits));
    for (std::uint32_t at = end - countBits(bits); bits != 0; bits &= bits - 1)
      pairs.changes[list][at++] = static_cast<std::uint16_t>(32 * lane() + lowestBit(bits));
    if (lane() == 31) memory_.changes[list] = end;
  }

  __device__ void writeSorted() const {
    const auto& pairs = memory_.pairs;
    Pair* out = in_.sortedPairs + round_.current;
    const std::uint32_t size = currentSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads)
      out[i] = {firstBox_ + pairs.ofCurrent[i], pairs.sorted[i]};
  }

  __device__ void writeStaged(DeltaSum place) const {
    const auto& pairs = memory_.pairs;
    for (std::uint32_t k = threadIdx.x; k < staged_.added(); k += kThreads) {
      const std::uint32_t i = pairs.changes[0][k];
      in_.put(in_.added, place.added() + k, {firstBox_ + pairs.ofCurrent[i], pairs.sorted[i]});
    }
    for (std::uint32_t k = threadIdx.x; k < staged_.removed(); k += kThreads) {
      const std::uint32_t i = pairs.changes[1][k];
      in_.put(in_.removed, place.removed() + k, {firstBox_ + pairs.ofOld[i], pairs.old[i]});
    }
  }

  const ListComparison& in_;
  TileMemory& memory_;
  const std::uint32_t firstBox_;
  Round round_{};
  std::uint32_t rounds_ = 0;
  DeltaSum staged_{};  ///< changes in the last round
};

static __global__ void __launch_bounds__(kThreads, 8) compareListsKernel(ListComparison in) {
  __shared__ TileMemory memory;
  const std::uint32_t hubs = in.hubs.count();  // this read overlaps the wait for the block's number
  const std::uint32_t number = takeTile(in.chain, memory.shared);
  const ListTileRange range = ListTiles::range(number, in.hubs, hubs, in.boxes);
  if (range.begin >= in.boxes && number > 0) return;
  ListTile tile(in, memory, range);
  const DeltaSum own = tile.sortAndCount();
  if (threadIdx.x < 32) {
    const unsigned long long before = sumOfTilesBefore(in.chain, number, own.both);
    if (threadIdx.x == 0) memory.before = before;
  }
  __syncthreads();
  const DeltaSum place{memory.before};
  if (own.both != 0 && in.hasCapacity()) tile.writeLists(place);
  if (memory.isLast) in.finish(DeltaSum{place.both + own.both});
}

}  // namespace lbvh
