// SPDX-License-Identifier: Zlib
// For steps in which few boxes have changed. Puts the changed boxes into their slots in the leaf
// blocks, and searches all blocks for pairs of these boxes. A warp takes up to 32 changed boxes
// that are neighbours in the boxes' order. It searches the tree from the root with their common
// bounds. When it reaches a block, it tests each changed box that overlaps the block against the
// block's boxes, one per lane. Each found pair is looked up in the pair lists of the last step.
// Known pairs are marked there, and only new pairs are written.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "broadphase/core/morton.h"
#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// A pair that is not in the old list. All its 16 bytes are written, so no copy reads memory that
/// was never written.
struct alignas(16) NewPair {
  Pair pair;
  std::uint32_t before;  ///< the old pair before which it belongs: an index within the tile
  std::uint32_t unused;
};

/// Memory through which the kernels of a step with few changed boxes communicate. The caller must
/// set all arrays except `news` to zero before the step.
struct ChangeMarks {
  static constexpr std::uint32_t kTile = 2048;   ///< old pairs that one thread block merges
  static constexpr std::uint32_t kMaxNew = 256;  ///< capacity of a tile's list of new pairs

  std::uint8_t* boxes;   ///< by box: 1 if it may have changed
  std::uint32_t* slots;  ///< one bit for each slot: whether its box may have changed
  /// One bit for each old pair: whether it has a changed box and was found again.
  std::uint32_t* kept;
  /// By tile: number of new pairs. It may exceed kMaxNew. Then the others are not stored.
  std::uint32_t* added;
  NewPair* news;  ///< kMaxNew per tile, unsorted; not cleared before the step

  __device__ bool hasChanged(Pair pair) const {
    return (boxes[pair.first] | boxes[pair.second]) != 0;
  }
};

/// Thread i writes the slot of box order[i].
struct InvertOrder {
  const std::uint32_t* order;
  std::uint32_t* slots;
  __device__ void operator()(std::uint32_t i) const { slots[order[i]] = i; }
};

/// Thread i puts changed box i into its slot, and marks the box. Thread 0 also begins the step.
struct PutChanged {
  View<const Aabb> boxes;
  const std::uint32_t* changed;  ///< number of changed boxes, then their indices
  const std::uint32_t* slots;    ///< by box: its slot
  LeafBlocks leaves;
  ChangeMarks marks;
  const StepArguments* arguments;
  StepHeader* header;  ///< header of the last step, whose scene and grid are kept
  std::uint32_t elements;

  __device__ void operator()(std::uint32_t i) const {
    if (i == 0) {
      header->begin(*arguments);
      header->overfull = 0;
    }
    for (std::size_t k = i; k < leaves.closed.size(); k += elements) leaves.closed[k] = 0;
    if (i >= changed[0]) return;
    const std::uint32_t id = changed[1 + i], slot = slots[id];
    const Aabb box = boxes[id];
    const Corners old = leaves.boxes[slot];
    const BoxClass now = classify(box), before = classify(boxOf(old));
    leaves.boxes.put(slot, now != BoxClass::nan ? cornersOf(box, id, 0) : emptyCorners());
    marks.boxes[id] = 1;
    atomicOr(&marks.slots[slot / 32], 1u << slot % 32);
    if (now == before) return;
    atomicAdd(countOf(now), 1u);
    atomicSub(countOf(before), 1u);
  }

 private:
  __device__ static Aabb boxOf(const Corners& corners) {
    return {{corners.min[0], corners.min[1], corners.min[2]},
            {corners.max[0], corners.max[1], corners.max[2]}};
  }
  __device__ std::uint32_t* countOf(BoxClass kind) const {
    SceneBounds& scene = header->scene;
    return kind == BoxClass::nan         ? &scene.nan
           : kind == BoxClass::oversized ? &scene.oversized
                                         : &scene.ordinary;
  }
};

/// The pairs of the last step.
struct OldPairs {
  PairLists lists;
  const Filter* filters;  ///< by box, or null
  View<const std::uint8_t> removedObjects;

  /// False for pairs of removed objects. Such an old pair is not reported when it ends, and is new
  /// when it is found again.
  __device__ bool counts(Pair pair) const { return !involvesRemoved(pair, removedObjects); }
};

struct FindChangedPairs {
  LeafBlocks leaves;
  OldPairs old;
  ChangeMarks marks;
  StepHeader* header;
  std::uint32_t parts;  ///< warps that share the search of a group

  /// The number of parts per group. With few groups, more warps share each group, because otherwise
  /// a GPU would have too few warps. On an H200 the search for the pairs of a tenth of 100,000
  /// boxes took 80 us with 8 parts, 29 us with 32, 32 us with 64.
  static std::uint32_t partsFor(std::uint32_t groups) {
    return std::clamp<std::uint32_t>(std::bit_floor(4096 / std::max(groups, 1u)), 8, 64);
  }

  /// Number of thread blocks to launch.
  std::size_t blocks() const {
    constexpr std::size_t kWarps = kThreads / kWarp;
    return (std::size_t{leaves.groupCount} * parts + kWarps - 1) / kWarps;
  }
};

/// The shared memory of a warp.
struct ChangedMemory {
  static constexpr std::uint32_t kList = 2 * kWarp;

  // The boxes whose pairs are searched for. All lanes read the same box at once.
  float4 minAndMaxX[kWarp];
  float2 maxYZ[kWarp];
  std::uint32_t id[kWarp], slot[kWarp];
  std::uint32_t list[kList];  ///< blocks that overlap the common bounds, not yet searched
  Pair stage[kStaged];
};

class ChangedSearch {
 public:
  __device__ ChangedSearch(const FindChangedPairs& in, ChangedMemory& memory)
      : in_(in), memory_(memory) {}

  /// Searches for the pairs of a group's changed boxes, in batches of up to 32 boxes. Part `part`
  /// takes some of the batches. If there are at least twice as many parts as batches, several parts
  /// share a batch.
  __device__ void run(std::uint32_t group, std::uint32_t part) {
    // One bit for each changed slot of the lane's block.
    const std::uint32_t changed = in_.marks.slots[group * kWarp + lane()];
    const std::uint32_t end = sumUpToLane(countBits(changed));
    const std::uint32_t all = __shfl_sync(kAllLanes, end, kWarp - 1);
    const std::uint32_t batches = (all + kWarp - 1) / kWarp;
    if (batches == 0) return;
    shares_ = batches < in_.parts ? in_.parts / batches : 1;
    if (part >= batches * shares_) return;
    const std::uint32_t slots = (group * kWarp + lane()) * kWarp, begin = end - countBits(changed);
    for (std::uint32_t batch = part % batches; batch < batches; batch += in_.parts) {
      next_ = part / batches;
      take(changed, slots, begin - batch * kWarp, all - batch * kWarp);
      search();
    }
    flush();
  }

 private:
  /// Takes the boxes of up to 32 changed slots.
  /// @param changed the lane's bits, for the slots from `slots` on
  /// @param place position in the memory for the lane's first box; a negative position has wrapped
  ///   around
  /// @param count number of boxes of all lanes whose position is not negative
  __device__ void take(std::uint32_t changed, std::uint32_t slots, std::uint32_t place,
                       std::uint32_t count) {
    __syncwarp();
    for (; changed != 0; changed &= changed - 1, ++place)
      if (place < kWarp) memory_.slot[place] = slots + lowestBit(changed);
    __syncwarp();
    own_ = lane() < count ? in_.leaves.boxes[memory_.slot[lane()]] : emptyCorners();
    memory_.minAndMaxX[lane()] = {own_.min[0], own_.min[1], own_.min[2], own_.max[0]};
    memory_.maxYZ[lane()] = {own_.max[1], own_.max[2]};
    memory_.id[lane()] = own_.id;
    bounds_ = boundsOf(own_, in_.old.filters);
  }

  __device__ void search() {
    visitGroups(
        in_.leaves, 0, in_.leaves.blockCount,
        [&](const Corners& bounds) { return mayCollide(bounds); },
        [&](std::uint32_t first, std::uint32_t groups) {
          for (; groups != 0; groups &= groups - 1)
            listBlocks((first + lowestBit(groups)) * kWarp + lane());
        });
    searchListed();
  }

  /// Whether boxes below these bounds may collide with a box of the batch.
  __device__ bool mayCollide(const Corners& bounds) const {
    bool may = overlap(bounds, bounds_);
    if (in_.old.filters != nullptr) may &= shouldCollide(bounds.filter(), bounds_.filter());
    return may;
  }

  __device__ void listBlocks(std::uint32_t block) {
    const bool wants = mayCollide(in_.leaves.blocks[block]);
    const std::uint32_t votes = __ballot_sync(kAllLanes, wants);
    if (wants) memory_.list[listed_ + lanesBefore(votes)] = block;
    listed_ += countBits(votes);
    if (listed_ > ChangedMemory::kList - kWarp) searchListed();
  }

  /// Searches this part's share of the list, and empties the list. Reads each block while the
  /// previous one is tested.
  __device__ void searchListed() {
    __syncwarp();
    if (next_ < listed_) {
      Corners next = boxOf(memory_.list[next_]);
      while (next_ < listed_) {
        const std::uint32_t block = memory_.list[next_];
        const Corners box = next;
        next_ += shares_;
        if (next_ < listed_) next = boxOf(memory_.list[next_]);
        searchBlock(block, box);
      }
    }
    next_ -= listed_;
    listed_ = 0;
    __syncwarp();
  }
  __device__ Corners boxOf(std::uint32_t block) const {
    return in_.leaves.boxes[block * kWarp + lane()];
  }

  /// @param box the lane's box in that block
  __device__ void searchBlock(std::uint32_t block, const Corners& box) {
    const bool overlaps = overlap(in_.leaves.blocks[block], own_);
    const std::uint32_t slot = block * kWarp + lane();
    const bool hasChanged = (in_.marks.slots[block] >> lane() & 1) != 0;
    for (std::uint32_t own = __ballot_sync(kAllLanes, overlaps); own != 0; own &= own - 1) {
      const std::uint32_t k = lowestBit(own);
      // A pair of two changed boxes is found from both sides, but must be kept only once.
      const bool hits = overlap(box, ownBox(k)) && !(hasChanged && slot <= memory_.slot[k]);
      const std::uint32_t votes = __ballot_sync(kAllLanes, hits);
      if (votes == 0) continue;
      if (staged_ + countBits(votes) > kStaged) {
        endIfOverfull();
        flush();
      }
      if (hits) memory_.stage[staged_ + lanesBefore(votes)] = makePair(memory_.id[k], box.id);
      staged_ += countBits(votes);
    }
  }
  __device__ Corners ownBox(std::uint32_t k) const {
    const float4 a = memory_.minAndMaxX[k];
    const float2 b = memory_.maxYZ[k];
    return {{a.x, a.y, a.z}, {a.w, b.x, b.y}, 0};
  }

  /// Ends the warp if a tile has more new pairs than it can hold. Then the step runs again for all
  /// boxes, so this search need not be complete. In a crowd a complete search would make billions
  /// of atomic additions.
  __device__ void endIfOverfull() const {
    const volatile std::uint32_t& overfull = in_.header->overfull;  // another warp may set it
    // A flag that ends all loops would take 1 to 3 % more instructions in each step. No other warp
    // waits for this one.
    if (__any_sync(kAllLanes, overfull != 0)) asm volatile("exit;");
  }

  __device__ void flush() {
    __syncwarp();
    for (std::uint32_t k = lane(); k < staged_; k += kWarp) settle(memory_.stage[k]);
    staged_ = 0;
    __syncwarp();
  }

  /// Marks the pair in the old list, or adds it to the new pairs.
  __device__ void settle(Pair pair) const {
    const OldPairs& old = in_.old;
    if (old.filters != nullptr && !shouldCollide(old.filters[pair.first], old.filters[pair.second]))
      return;
    const std::uint32_t end = old.lists.begin(pair.first + 1);
    const std::uint32_t at = lowerBound(old.lists.begin(pair.first), end, pair.second);
    if (at < end && old.lists.pairs[at].second == pair.second && old.counts(pair)) {
      atomicOr(&in_.marks.kept[at / 32], 1u << at % 32);
      return;
    }
    const std::uint32_t tile = at / ChangeMarks::kTile;
    const std::uint32_t place = atomicAdd(&in_.marks.added[tile], 1u);
    if (place < ChangeMarks::kMaxNew)
      in_.marks.news[tile * ChangeMarks::kMaxNew + place] = {pair, at % ChangeMarks::kTile, 0};
    else
      atomicExch(&in_.header->overfull, 1u);
  }
  /// The index of the first of the old pairs [begin, end) whose second box is at least `second`.
  /// All of these pairs must have the same first box.
  __device__ std::uint32_t lowerBound(std::uint32_t begin, std::uint32_t end,
                                      std::uint32_t second) const {
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      if (in_.old.lists.pairs[middle].second < second)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }

  const FindChangedPairs& in_;
  ChangedMemory& memory_;
  Corners own_{};     ///< box of the lane
  Corners bounds_{};  ///< bounds of the boxes of all lanes, with their filters
  /// Number of parts that share the list; index of the part's next block.
  std::uint32_t shares_ = 1, next_ = 0;
  std::uint32_t listed_ = 0, staged_ = 0;
};

/// Requests eight thread blocks per SM, because otherwise ptxas spills registers.
static __global__ void __launch_bounds__(kThreads, 8) findChangedPairsKernel(FindChangedPairs in) {
  __shared__ ChangedMemory memory[kThreads / kWarp];
  const std::uint32_t warp = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  const std::uint32_t group = warp / in.parts;
  if (group >= in.leaves.groupCount || in.header->extents > in.header->arguments.mostExtents)
    return;
  ChangedSearch(in, memory[threadIdx.x / kWarp]).run(group, warp % in.parts);
}

}  // namespace lbvh
