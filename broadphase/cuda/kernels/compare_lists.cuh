// SPDX-License-Identifier: Zlib
// Stages 6 and 7 on a GPU in one kernel: sorts each box's list of pairs, and compares it with the
// box's list of the step before. A block takes the lists of 64 consecutive boxes, in rounds that
// fit its shared memory; most blocks need one. A list that does not fit has a round for itself, see
// compare_hub.cuh. Added and removed pairs leave in runs of whole lines, for they cross the bus.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/compare_hub.cuh"
#include "broadphase/cuda/kernels/list_comparison.cuh"
#include "broadphase/cuda/kernels/look_back.cuh"
#include "broadphase/cuda/kernels/sort_network.cuh"

namespace lbvh {

/// Boxes [begin, end) of a tile.
struct Round {
  std::uint32_t begin, end;
  bool isHub;                ///< of one box
  std::uint32_t fresh, old;  ///< where the lists begin
};

struct TileMemory {
  static constexpr std::uint32_t kBoxes = ListComparison::kBoxes;
  static constexpr std::uint32_t kWords = 32;          ///< one for each lane of a warp
  static constexpr std::uint32_t kRoom = 32 * kWords;  ///< pairs in a round, new ones and old ones
  static constexpr std::uint32_t kLongest = 256;       ///< a longer list has a round for itself

  std::uint32_t shared;
  unsigned long long before;
  std::uint32_t fresh[kBoxes + 1], old[kBoxes + 1];  ///< where lists begin
  std::uint32_t changes[2];                          ///< of a round: added and removed
  std::uint32_t isAdded[kWords];                     ///< a bit for each of `sorted`
  std::uint32_t isDone[kWords];                      ///< and of `old`: it is not to be removed
  bool isHubChanged[kBoxes];                         ///< the ground meets all boxes in all steps
  union {
    struct {
      std::uint32_t unsorted[kRoom], sorted[kRoom], old[kRoom];
      std::uint8_t ofFresh[kRoom], ofOld[kRoom];  ///< boxes in the tile
      std::uint16_t changes[2][kRoom];            ///< which ones: added, removed
    } pairs;
    HubMemory hub;
  };
};

class ListTile {
 public:
  static constexpr std::uint32_t kBoxes = TileMemory::kBoxes, kRoom = TileMemory::kRoom;

  __device__ ListTile(const ListComparison& in, TileMemory& memory, std::uint32_t tile)
      : in_(in), memory_(memory), firstBox_(tile * kBoxes) {
    const std::uint32_t box = threadIdx.x;
    if (box <= kBoxes) {
      memory.fresh[box] = in.fresh.begin(firstBox_ + box);
      memory.old[box] = in.old.begin(firstBox_ + box);
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

  /// Writes the pairs that are added and removed to their places in the lists of all tiles. What
  /// one round has found is still there; several are done again.
  __device__ void writeLists(DeltaSum place) {
    if (rounds_ == 1 && !round_.isHub) return writeStaged(place);
    for (std::uint32_t begin = 0; begin < kBoxes; begin = round_.end) {
      round_ = roundFrom(begin);
      if (round_.isHub) {
        if (memory_.isHubChanged[begin]) place += hub().compare(false, &place);
      } else {
        staged_ = compareRound();
        writeStaged(place);
        place += staged_;
      }
    }
  }

 private:
  __device__ HubComparison hub() const { return {in_, memory_.hub, firstBox_ + round_.begin}; }

  /// As many boxes as fit, or one that does not. The round before is no longer read.
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
    if (threadIdx.x < TileMemory::kWords)
      memory_.isAdded[threadIdx.x] = memory_.isDone[threadIdx.x] = 0;
    const std::uint32_t fresh = memory_.fresh[begin], old = memory_.old[begin];
    if (__syncthreads_and(fits)) return {begin, kBoxes, false, fresh, old};
    if (threadIdx.x == 0) memory_.shared = kBoxes;
    __syncthreads();
    if (!fits) atomicMin(&memory_.shared, box);
    __syncthreads();
    const std::uint32_t end = memory_.shared;
    return end > begin ? Round{begin, end, false, fresh, old}
                       : Round{begin, begin + 1, true, fresh, old};
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

  __device__ std::uint32_t freshSize() const { return freshBegin(round_.end); }
  __device__ std::uint32_t oldSize() const { return oldBegin(round_.end); }
  __device__ std::uint32_t freshBegin(std::uint32_t box) const {
    return memory_.fresh[box] - round_.fresh;
  }
  __device__ std::uint32_t oldBegin(std::uint32_t box) const {
    return memory_.old[box] - round_.old;
  }

  __device__ void load() {
    auto& pairs = memory_.pairs;
    const std::uint32_t freshs = freshSize(), olds = oldSize();
    for (std::uint32_t i = threadIdx.x; i < freshs; i += kThreads)
      pairs.unsorted[i] = in_.freshSecond(round_.fresh + i);
    for (std::uint32_t i = threadIdx.x; i < olds; i += kThreads) {
      const Pair pair = in_.old.pairs[round_.old + i];
      pairs.old[i] = pair.second;
      pairs.ofOld[i] = static_cast<std::uint8_t>(pair.first - firstBox_);
      if (!in_.counts(pair)) atomicOr(&memory_.isDone[i / 32], 1u << i % 32);
    }
  }

  static constexpr std::uint32_t kShort = 16;  ///< what registers hold of a list

  __device__ void sortLists() {
    static_assert(kThreads == 2 * kBoxes, "half of the threads sort, the others tell the owners");
    const std::uint32_t box = threadIdx.x % kBoxes;
    const bool isOfRound = box >= round_.begin && box < round_.end;
    const std::uint32_t begin = isOfRound ? freshBegin(box) : 0;
    const std::uint32_t size = isOfRound ? freshBegin(box + 1) - begin : 0;
    if (threadIdx.x >= kBoxes) {
      for (std::uint32_t i = 0; i < size; ++i)
        memory_.pairs.ofFresh[begin + i] = static_cast<std::uint8_t>(box);
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

  /// A warp one list: no two of its numbers are equal, so each has its own place.
  __device__ void sortByCounting(std::uint32_t begin, std::uint32_t size) {
    const std::uint32_t* list = &memory_.pairs.unsorted[begin];
    for (std::uint32_t i = lane(); i < size; i += 32) {
      std::uint32_t place = 0;
      for (std::uint32_t k = 0; k < size; ++k) place += list[k] < list[i];
      memory_.pairs.sorted[begin + place] = list[i];
    }
  }

  /// A thread for each new pair finds it among the old ones.
  __device__ void match() {
    auto& pairs = memory_.pairs;
    const std::uint32_t size = freshSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads) {
      const std::uint32_t box = pairs.ofFresh[i];
      if (!takeOld(pairs.sorted[i], oldBegin(box), oldBegin(box + 1)))
        atomicOr(&memory_.isAdded[i / 32], 1u << i % 32);
    }
  }

  /// @return whether the old list has it, where it is done then
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

  /// One warp lists the added pairs, another the removed ones: a word for each lane.
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
    Pair* out = in_.sortedPairs + round_.fresh;
    const std::uint32_t size = freshSize();
    for (std::uint32_t i = threadIdx.x; i < size; i += kThreads)
      out[i] = {firstBox_ + pairs.ofFresh[i], pairs.sorted[i]};
  }

  __device__ void writeStaged(DeltaSum place) const {
    const auto& pairs = memory_.pairs;
    for (std::uint32_t k = threadIdx.x; k < staged_.added(); k += kThreads) {
      const std::uint32_t i = pairs.changes[0][k];
      in_.put(in_.added, place.added() + k, {firstBox_ + pairs.ofFresh[i], pairs.sorted[i]});
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
  if (own.both != 0 && in.hasRoom()) tile.writeLists(place);
  if (number + 1 == gridDim.x) in.finish(DeltaSum{place.both + own.both});
}

}  // namespace lbvh
