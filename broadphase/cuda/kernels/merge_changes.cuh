// SPDX-License-Identifier: Zlib
// Builds the pair lists of a step from the old lists, if few boxes have changed. An old pair with a
// changed box is dropped if the search did not find it again. New pairs are inserted. Each thread
// block merges 2,048 old pairs. The old pairs keep their order, so only the few new pairs are
// sorted.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/changed_search.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"

namespace lbvh {

/// The data that UpdateOffsets needs about a tile of old pairs.
struct MergedTile {
  static constexpr std::uint32_t kRows = ChangeMarks::kTile / kWarp;

  std::uint32_t to;           ///< where the kept pairs of the tile begin in the new list
  std::uint32_t hasChanged;   ///< 0: no pair was dropped or inserted, and the arrays are not set
  std::uint32_t gone[kRows];  ///< one bit for each old pair: whether it was dropped
  std::uint32_t goneBefore[kRows];  ///< number of dropped pairs in earlier rows of the tile
};

struct MergeChanges {
  static constexpr std::uint32_t kTile = ChangeMarks::kTile;
  static constexpr std::uint32_t kRows = kTile / kWarp;     ///< rows of 32 pairs, one per lane
  static constexpr std::uint32_t kEach = kTile / kThreads;  ///< rows of a warp

  OldPairs old;
  ChangeMarks marks;
  View<Pair> memory;   ///< receives the pairs of this step
  MergedTile* merged;  ///< by tile
  View<Pair> added, removed;
  StepHeader* header;
  StepHeader* report;  ///< receives the header at the end of the step, for the host
  TileChain chain;     ///< for the sums of added and dropped pairs
  /// For the sums of dropped pairs that are reported; used if objects were removed.
  TileChain reported;

  static std::size_t tiles(std::size_t pairs) { return pairs / kTile + 1; }
};

struct MergeMemory {
  static constexpr std::uint32_t kRows = MergeChanges::kRows, kMax = ChangeMarks::kMaxNew;

  std::uint32_t shared;
  unsigned long long before, reportedBefore;  ///< sums over all earlier tiles
  std::uint32_t gone[kRows],                  ///< one bit for each old pair: whether it is dropped
      reported[kRows];  ///< one bit for each old pair: whether it is reported as removed
  std::uint32_t goneBefore[kRows + 1], reportedGoneBefore[kRows + 1], addedBefore[kRows + 1];
  NewPair unsorted[kMax], added[kMax];
};

/// The number of pairs that satisfy `is`. The pairs that satisfy it must come first.
template <class Is>
__device__ std::uint32_t countWhile(const NewPair* pairs, std::uint32_t size, const Is& is) {
  std::uint32_t begin = 0, end = size;
  while (begin < end) {
    const std::uint32_t middle = (begin + end) / 2;
    if (is(pairs[middle]))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// The index of a tile's old pair i among the tile's kept pairs.
__device__ inline std::uint32_t placeOfKept(const std::uint32_t* gone,
                                            const std::uint32_t* goneBefore, std::uint32_t i) {
  const std::uint32_t below = (1u << i % kWarp) - 1;
  return i - goneBefore[i / kWarp] - countBits(gone[i / kWarp] & below);
}

/// Thread i writes where the list of box i begins. This is a separate kernel, because one block of
/// the merge might have to write nearly all offsets: the lists of boxes without pairs can all begin
/// in one tile.
struct UpdateOffsets {
  const std::uint32_t* old;  ///< by box: where its old list begins
  const MergedTile* merged;
  ChangeMarks marks;
  std::uint32_t* offsets;

  __device__ void operator()(std::uint32_t box) const {
    const std::uint32_t tile = old[box] / ChangeMarks::kTile, i = old[box] % ChangeMarks::kTile;
    const MergedTile& there = merged[tile];
    if (there.hasChanged == 0) {
      offsets[box] = there.to + i;
      return;
    }
    const std::uint32_t added = min(marks.added[tile], ChangeMarks::kMaxNew);
    const auto isBefore = [&](const NewPair& one) { return one.pair.first < box; };
    offsets[box] = there.to + placeOfKept(there.gone, there.goneBefore, i) +
                   countWhile(marks.news + tile * ChangeMarks::kMaxNew, added, isBefore);
  }
};

class MergeTile {
 public:
  __device__ MergeTile(const MergeChanges& in, MergeMemory& memory, std::uint32_t tile,
                       std::uint32_t oldPairs)
      : in_(in),
        memory_(memory),
        tile_(tile),
        begin_(tile * MergeChanges::kTile),
        size_(min(MergeChanges::kTile, oldPairs - begin_)),
        isLast_(oldPairs - begin_ < MergeChanges::kTile),
        added_(min(in.marks.added[tile], ChangeMarks::kMaxNew)) {}

  /// @return the numbers of added and dropped pairs
  __device__ DeltaSum count() {
    if (threadIdx.x < MergeMemory::kRows)
      memory_.gone[threadIdx.x] = memory_.reported[threadIdx.x] = 0;
    for (std::uint32_t k = threadIdx.x; k < added_; k += kThreads)
      memory_.unsorted[k] = in_.marks.news[tile_ * ChangeMarks::kMaxNew + k];
    __syncthreads();
    const bool anyGo = size_ == MergeChanges::kTile ? findGone<true>() : findGone<false>();
    changes_ = __syncthreads_or(anyGo) != 0 || added_ != 0;
    if (!changes_) return {};
    sortAdded();
    sumRows();
    __syncthreads();
    for (std::uint32_t row = threadIdx.x; row <= MergeMemory::kRows; row += kThreads)
      memory_.addedBefore[row] = addedBefore(row * kWarp);
    __syncthreads();
    return DeltaSum::of(added_, memory_.goneBefore[MergeMemory::kRows]);
  }

  __device__ std::uint32_t reportedGone() const {
    return changes_ ? memory_.reportedGoneBefore[MergeMemory::kRows] : 0;
  }

  /// @param before numbers of added and dropped pairs in all earlier tiles
  /// @param reportedBefore number of dropped pairs that earlier tiles report
  __device__ void write(DeltaSum before, std::uint32_t reportedBefore) const {
    const std::uint32_t to = begin_ + before.added() - before.removed();
    if (changes_) {
      writeMerged(to, reportedBefore);
      for (std::uint32_t k = threadIdx.x; k < added_; k += kThreads) {
        const NewPair& one = memory_.added[k];
        put(to + placeOf(one.before) + k, one.pair);
        if (before.added() + k < in_.added.size()) in_.added[before.added() + k] = one.pair;
      }
    } else if (to + size_ <= in_.memory.size()) {
      Pair* const pairs = in_.memory.data() + to + rowOf(0) * kWarp + lane();
#pragma unroll
      for (std::uint32_t k = 0; k < MergeChanges::kEach; ++k)
        if (size_ == MergeChanges::kTile || rowOf(k) * kWarp + lane() < size_)
          pairs[k * kWarp] = mine_[k];
    }
    describe(to);
  }

  __device__ bool isLast() const { return isLast_; }

 private:
  __device__ static std::uint32_t rowOf(std::uint32_t k) {
    return threadIdx.x / kWarp * MergeChanges::kEach + k;
  }
  /// Reads the tile's old pairs.
  /// @return whether a pair in the warp's rows is dropped
  template <bool kIsFull>
  __device__ bool findGone() {
    bool any = false;
    const Pair* const pairs = in_.old.lists.pairs + begin_ + rowOf(0) * kWarp + lane();
#pragma unroll
    for (std::uint32_t k = 0; k < MergeChanges::kEach; ++k) {
      const bool isThere = kIsFull || rowOf(k) * kWarp + lane() < size_;
      mine_[k] = isThere ? pairs[k * kWarp] : Pair{};
      const bool hasChanged = in_.marks.hasChanged(mine_[k]);
      std::uint32_t gone = __ballot_sync(kAllLanes, isThere && hasChanged);
      if (gone == 0) continue;
      gone &= ~in_.marks.kept[begin_ / kWarp + rowOf(k)];
      if (gone == 0) continue;
      any = true;
      std::uint32_t reported = gone;
      if (!in_.old.removedObjects.empty())
        reported &= __ballot_sync(kAllLanes, isThere && in_.old.counts(mine_[k]));
      if (lane() == 0) {
        memory_.gone[rowOf(k)] = gone;
        memory_.reported[rowOf(k)] = reported;
      }
    }
    return any;
  }

  __device__ void put(std::uint32_t at, Pair pair) const {
    if (at < in_.memory.size()) in_.memory[at] = pair;
  }

  /// Sorts the new pairs. No two are equal, so each gets a different index.
  __device__ void sortAdded() {
    for (std::uint32_t k = threadIdx.x; k < added_; k += kThreads) {
      const NewPair one = memory_.unsorted[k];
      std::uint32_t place = 0;
      for (std::uint32_t i = 0; i < added_; ++i) place += memory_.unsorted[i].pair < one.pair;
      memory_.added[place] = one;
    }
  }

  /// Computes, for each row, the number of dropped pairs in all earlier rows. One warp does this.
  __device__ void sumRows() {
    static_assert(MergeMemory::kRows == 2 * kWarp, "two rows per lane");
    if (threadIdx.x >= kWarp) return;
    const auto sum = [](const std::uint32_t* bits, std::uint32_t* before) {
      const std::uint32_t row = 2 * lane();
      const std::uint32_t own = countBits(bits[row]), next = countBits(bits[row + 1]);
      const std::uint32_t end = sumUpToLane(own + next);
      before[row] = end - next - own;
      before[row + 1] = end - next;
      if (lane() == kWarp - 1) before[MergeMemory::kRows] = end;
    };
    sum(memory_.gone, memory_.goneBefore);
    sum(memory_.reported, memory_.reportedGoneBefore);
  }

  /// The number of new pairs that belong before one of the old pairs [0, i).
  __device__ std::uint32_t addedBefore(std::uint32_t i) const {
    return countWhile(memory_.added, added_, [&](const NewPair& one) { return one.before < i; });
  }
  /// The index of old pair i among the old pairs that are kept.
  __device__ std::uint32_t placeOf(std::uint32_t i) const {
    return placeOfKept(memory_.gone, memory_.goneBefore, i);
  }

  __device__ void writeMerged(std::uint32_t to, std::uint32_t reportedBefore) const {
#pragma unroll
    for (std::uint32_t k = 0; k < MergeChanges::kEach; ++k) {
      const std::uint32_t row = rowOf(k), i = row * kWarp + lane();
      const std::uint32_t first = memory_.addedBefore[row], last = memory_.addedBefore[row + 1];
      const std::uint32_t gone = memory_.gone[row], reported = memory_.reported[row];
      std::uint32_t before = first;
      for (std::uint32_t one = first; one < last; ++one) before += memory_.added[one].before <= i;
      if (i < size_ && (gone >> lane() & 1) == 0) put(to + placeOf(i) + before, mine_[k]);
      if ((reported >> lane() & 1) == 0) continue;
      const std::uint32_t at =
          reportedBefore + memory_.reportedGoneBefore[row] + lanesBefore(reported);
      if (at < in_.removed.size()) in_.removed[at] = mine_[k];
    }
  }

  /// Writes the data that UpdateOffsets reads.
  __device__ void describe(std::uint32_t to) const {
    MergedTile& merged = in_.merged[tile_];
    if (threadIdx.x == 0) merged.to = to, merged.hasChanged = changes_;
    if (!changes_) return;
    if (threadIdx.x < MergedTile::kRows) {
      merged.gone[threadIdx.x] = memory_.gone[threadIdx.x];
      merged.goneBefore[threadIdx.x] = memory_.goneBefore[threadIdx.x];
    }
    for (std::uint32_t k = threadIdx.x; k < added_; k += kThreads)
      in_.marks.news[tile_ * ChangeMarks::kMaxNew + k] = memory_.added[k];
  }

  const MergeChanges& in_;
  MergeMemory& memory_;
  const std::uint32_t tile_, begin_, size_;
  const bool isLast_;  ///< the last tile has 0 to kTile - 1 old pairs
  const std::uint32_t added_;
  bool changes_ = false;
  Pair mine_[MergeChanges::kEach];
};

/// Requests eight thread blocks per SM, because otherwise ptxas spills registers for compute
/// capability 8.0.
static __global__ void __launch_bounds__(kThreads, 8) mergeChangesKernel(MergeChanges in) {
  __shared__ MergeMemory memory;
  const std::uint32_t number = takeTile(in.chain, memory.shared);
  const auto oldPairs = static_cast<std::uint32_t>(in.header->arguments.oldPairs);
  if (number > oldPairs / MergeChanges::kTile) return;
  MergeTile tile(in, memory, number, oldPairs);
  const DeltaSum own = tile.count();
  const bool hasRemoved = !in.old.removedObjects.empty();
  if (threadIdx.x < kWarp) {
    const unsigned long long before = sumOfTilesBefore(in.chain, number, own.both);
    const unsigned long long reported =
        hasRemoved ? sumOfTilesBefore(in.reported, number, tile.reportedGone())
                   : DeltaSum{before}.removed();
    if (threadIdx.x == 0) memory.before = before, memory.reportedBefore = reported;
  }
  __syncthreads();
  const DeltaSum before{memory.before};
  const auto reportedBefore = static_cast<std::uint32_t>(memory.reportedBefore);
  tile.write(before, reportedBefore);
  if (!tile.isLast()) return;
  if (threadIdx.x == 0) {
    const DeltaSum all{before.both + own.both};
    in.header->pairs = oldPairs + std::uint64_t{all.added()} - all.removed();
    in.header->delta = {all.added(), reportedBefore + tile.reportedGone()};
  }
  __syncthreads();
  reportHeader(in.header, in.report);
}

}  // namespace lbvh
