// SPDX-License-Identifier: Zlib
// Groups the pairs of a search into lists by their first box. A warp gathers pairs in shared
// memory, and counts the pairs of each box when it writes them. The list of a box begins at the sum
// of the counts of all earlier boxes. The second boxes of the pairs are scattered to these lists.
// Whole pairs are never sorted: lists are short, and compare_lists.cuh sorts each list separately.
#pragma once

#include <cstdint>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

#include "broadphase/core/device_input.h"
#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/list_tiles.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Where a search writes pairs. The pairs of each first box are counted, and each pair gets an
/// index among the pairs of its first box.
struct FoundPairs {
  View<Pair> pairs;
  std::uint64_t limit;        ///< the search stops when it has found more pairs than this
  unsigned long long* count;  ///< number of found pairs; may exceed the size of `pairs`
  PairRule rule;              ///< which pairs are accepted
  /// By box: number of its pairs; null: pairs are not counted, and `places` is not written.
  std::uint32_t* counts;
  std::uint32_t* places;  ///< by pair: its index among the pairs of its first box
  /// By pair: its index among the pairs of its second box; or null.
  std::uint32_t* otherPlaces = nullptr;
};

/// Maximum number of pairs that a warp gathers.
inline constexpr std::uint32_t kStaged = 128;

/// Gathers the pairs of a warp, and writes up to kStaged of them at once. Each write needs one
/// atomic addition to FoundPairs::count, and its stores are coalesced.
/// @tparam kIsScene false: the rule has only filters, and `otherPlaces` is null. That saves
///   registers.
template <bool kIsScene>
class PairStage {
 public:
  __device__ PairStage(const FoundPairs& out, Pair (&stage)[kStaged]) : out_(out), stage_(stage) {}

  /// Provides memory for the next `n` pairs of all lanes together. `n` is at most kStaged.
  __device__ void reserve(std::uint32_t n) {
    if (size_ + n > kStaged) flush();
  }
  /// The memory for the lane's pairs. `begin` is an index into the memory that reserve() provided.
  __device__ Pair* at(std::uint32_t begin) { return &stage_[size_ + begin]; }
  __device__ void close(std::uint32_t n) { size_ += n; }

  /// Whether the search has found more pairs than the limit.
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

  __device__ void dropRefused() {
    std::uint32_t kept = 0;
    for (std::uint32_t begin = 0; begin < size_; begin += kWarp) {
      const bool isThere = begin + lane() < size_;
      const Pair pair = isThere ? stage_[begin + lane()] : Pair{};
      const bool keeps = isThere && accepts(pair);
      const std::uint32_t votes = __ballot_sync(kAllLanes, keeps);
      __syncwarp();  // all lanes have read the pairs that are overwritten next
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
    const unsigned long long rest = out_.pairs.size() > begin ? out_.pairs.size() - begin : 0;
    const std::uint32_t fits = rest < size_ ? static_cast<std::uint32_t>(rest) : size_;
    if (out_.counts == nullptr) {
      for (std::uint32_t k = lane(); k < fits; k += kWarp) out_.pairs[begin + k] = stage_[k];
      return;
    }
    for (std::uint32_t k = lane(); k - lane() < fits; k += kWarp) {
      const std::uint32_t writing = __ballot_sync(kAllLanes, k < fits);
      if (k >= fits) continue;
      const unsigned long long at = begin + k;
      const Pair pair = stage_[k];
      out_.pairs[at] = pair;
      out_.places[at] = placeOf(pair.first, writing);
      if (kIsScene && out_.otherPlaces != nullptr)
        out_.otherPlaces[at] = placeOf(pair.second, writing);
    }
  }

  /// Counts one pair of `box`, and returns its index among the pairs of the box. Those of the
  /// `lanes` that have the same box share one atomic addition, because a hub's pairs are found
  /// together.
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

/// The pairs of box b are in [begin(b), begin(b + 1)).
struct PairLists {
  const Pair* pairs = nullptr;
  const std::uint32_t* offsets = nullptr;  ///< boxes + 1 elements
  std::uint32_t boxes = 0;                 ///< boxes from this index on have no pairs

  __device__ std::uint32_t begin(std::uint32_t box) const {
    return boxes == 0 ? 0 : offsets[box < boxes ? box : boxes];
  }
};

/// Thread i finds where the list of box i begins in the sorted pairs. One thread per pair would
/// read less, but would be slow for a pair that is followed by many boxes without pairs.
struct IndexLists {
  View<const Pair> pairs;
  std::uint32_t* offsets;

  __device__ void operator()(std::uint32_t box) const {
    std::uint32_t begin = 0, end = static_cast<std::uint32_t>(pairs.size());
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      if (pairs[middle].first < box)
        begin = middle + 1;
      else
        end = middle;
    }
    offsets[box] = begin;
  }
};

/// Thread i puts the second box of found pair i into the list of its first box. With `otherPlaces`
/// it also puts the first box into the list of the second one.
struct ScatterPairs {
  View<const Pair> pairs;
  const unsigned long long* found;   ///< number of found pairs; may exceed the size of `pairs`
  const std::uint32_t* places;       ///< by pair: its index in the list
  const std::uint32_t* otherPlaces;  ///< null: each pair is in one list only
  const std::uint32_t* offsets;      ///< by box: where its list begins
  std::uint32_t* partners;

  __device__ void operator()(std::uint32_t i) const {
    if (i >= *found) return;
    const Pair pair = pairs[i];
    partners[offsets[pair.first] + places[i]] = pair.second;
    if (otherPlaces != nullptr) partners[offsets[pair.second] + otherPlaces[i]] = pair.first;
  }
};

/// Replaces the count of each box by the sum of the counts of all earlier boxes.
struct SumCounts {
  static constexpr int kEach = 8;  ///< counts per thread
  static constexpr std::uint32_t kTile = kEach * kThreads;

  View<std::uint32_t> counts;
  TileChain chain;
  HubList hubs{};  ///< receives boxes with large counts

  static std::size_t tiles(std::size_t counts) { return (counts + kTile - 1) / kTile; }
};

static __global__ void __launch_bounds__(kThreads) sumCountsKernel(SumCounts sum) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ std::uint32_t shared, before;
  const std::uint32_t tile = takeTile(sum.chain, shared), begin = tile * SumCounts::kTile;
  const auto size = static_cast<std::uint32_t>(sum.counts.size()) - begin;
  std::uint32_t counts[SumCounts::kEach];
  cub::LoadDirectBlocked(threadIdx.x, sum.counts.data() + begin, counts, size, 0u);
  for (std::uint32_t k = 0; k < SumCounts::kEach; ++k)
    if (counts[k] >= HubList::kFrom) sum.hubs.add(begin + threadIdx.x * SumCounts::kEach + k);
  std::uint32_t all = 0;
  Scan(scan).ExclusiveSum(counts, counts, all);
  if (threadIdx.x < 32) {
    const auto found = static_cast<std::uint32_t>(sumOfTilesBefore(sum.chain, tile, all));
    if (threadIdx.x == 0) before = found;
  }
  __syncthreads();
  for (std::uint32_t& count : counts) count += before;
  cub::StoreDirectBlocked(threadIdx.x, sum.counts.data() + begin, counts, size);
}

/// Two counts in one number, with 31 bits each. That is enough, because a step on a GPU has at most
/// kMaxCountable pairs.
struct DeltaSum {
  static constexpr int kBits = 31;

  unsigned long long both = 0;

  __device__ static DeltaSum of(std::uint32_t added, std::uint32_t removed) {
    return {static_cast<unsigned long long>(removed) << kBits | added};
  }
  __device__ std::uint32_t added() const {
    return static_cast<std::uint32_t>(both & ((1ull << kBits) - 1));
  }
  __device__ std::uint32_t removed() const { return static_cast<std::uint32_t>(both >> kBits); }
  __device__ DeltaSum& operator+=(DeltaSum other) {
    both += other.both;
    return *this;
  }
};

/// Copies the header to memory that the host reads. All threads of a block must call this function.
__device__ inline void reportHeader(const StepHeader* header, StepHeader* report) {
  constexpr unsigned kWords = sizeof(StepHeader) / 4;
  static_assert(kWords <= kThreads, "one word per thread");
  if (threadIdx.x < kWords)
    reinterpret_cast<std::uint32_t*>(report)[threadIdx.x] =
        reinterpret_cast<const std::uint32_t*>(header)[threadIdx.x];
}

/// The arguments of the kernel in compare_lists.cuh.
struct ListComparison {
  PairLists current;              ///< the new lists; already sorted if `partners` is null
  const std::uint32_t* partners;  ///< second boxes of the new lists, unsorted; or null
  Pair* sortedPairs;              ///< receives the new lists, sorted, if `partners` is given
  PairLists old;
  std::uint32_t boxes;  ///< boxes from this index on have no lists
  View<const std::uint8_t> removedObjects;
  View<Pair> added, removed;  ///< receive as many pairs as fit
  StepHeader* header;
  StepHeader* report;  ///< receives the header at the end of the step, for the host; or null
  TileChain chain;
  HubList hubs{};
  /// Null: in the list of a box, all second boxes have larger indices than the box. Otherwise they
  /// may have any indices less than *others.
  const std::uint64_t* others = nullptr;

  /// The maximum number of tiles. There is at least one, because the last tile ends the step.
  static std::size_t tiles(std::size_t boxes) {
    return (boxes == 0 ? 1 : (boxes + ListTiles::kBoxes - 1) / ListTiles::kBoxes) +
           HubList::kMoreTiles;
  }

  __device__ bool hasCapacity() const { return added.size() != 0 || removed.size() != 0; }
  __device__ bool sorts() const { return partners != nullptr; }
  __device__ std::uint32_t currentSecond(std::uint32_t i) const {
    return sorts() ? partners[i] : current.pairs[i].second;
  }
  /// Whether an old pair is reported when it ends. A pair with a removed object is not reported.
  __device__ bool counts(Pair pair) const { return !involvesRemoved(pair, removedObjects); }

  __device__ static void put(View<Pair> list, std::uint32_t at, Pair pair) {
    if (at < list.size()) list[at] = pair;
  }

  /// Ends the step. The block of the last tile calls this function.
  __device__ void finish(DeltaSum all) const {
    if (threadIdx.x == 0) header->delta = {all.added(), all.removed()};
    if (report == nullptr) return;
    __syncthreads();
    reportHeader(header, report);
  }
};

}  // namespace lbvh
