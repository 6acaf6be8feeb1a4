// SPDX-License-Identifier: Zlib
// Stage 5 on a GPU: finds the pairs by searching leaf blocks. A warp searches for the pairs of one
// block's boxes, or does a part of this search. It tests the bounds of 32 later blocks (in the
// boxes' order) at a time. In a later block that overlaps the bounds of the warp's own block, each
// box that overlaps these bounds is queued. Each queued box is tested against the warp's 32 boxes,
// one per lane. So all lanes have work, and memory accesses are coalesced.
//
// In this order, the boxes of each world are together, and boxes in all worlds come last. So the
// search of a block first covers later blocks up to the end of the block's last world. Then it
// covers the blocks of the boxes in all worlds.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/types.h"

namespace lbvh {

struct FindBlockPairs {
  LeafBlocks leaves;
  FoundPairs out;
  StepHeader* header;
  std::uint32_t parts;  ///< warps that share the search of a block
  WorldSlots worlds{};  ///< for a search with worlds

  /// With few blocks, a GPU would have too few warps, so several warps share the search of a block.
  /// This takes more instructions, but they run in parallel.
  static std::uint32_t partsFor(std::size_t boxes) {
    return boxes <= 2048 ? 8 : boxes <= 8192 ? 4 : boxes <= 65536 ? 2 : 1;
  }

  /// Number of threads in a thread block. Its warps search for the pairs of neighbouring leaf
  /// blocks, so they share the data in the cache. The search of a DeviceScene takes more registers,
  /// so more warps fit on an SM if thread blocks are smaller.
  template <bool kIsScene>
  static constexpr unsigned kBlockThreads = kIsScene ? kThreads : 2 * kThreads;

  /// Number of thread blocks to launch.
  template <bool kIsScene>
  std::size_t blocks() const {
    constexpr std::size_t kWarps = kBlockThreads<kIsScene> / kWarp;
    return (std::size_t{leaves.blockCount} * parts + kWarps - 1) / kWarps;
  }
};

/// The shared memory of a warp.
struct WarpMemory {
  static constexpr std::uint32_t kQueue = 2 * kWarp + 8;  ///< 31 queued boxes, 32 new ones, padding
  static constexpr std::uint32_t kList = 2 * kWarp;

  // The queue: boxes that overlap the block, not yet tested. All lanes read the same box at once,
  // and a read delivers 128 bytes per cycle to all lanes together. So the queue holds only what the
  // test needs.
  float4 minAndMaxX[kQueue];
  float2 maxYZ[kQueue];
  std::uint32_t id[kQueue];
  std::uint32_t list[kList];  ///< blocks that overlap the warp's block, not yet searched
  Pair stage[kStaged];
};

template <bool kIsScene>
class BlockSearch {
 public:
  __device__ BlockSearch(const FindBlockPairs& in, WarpMemory& memory, std::uint32_t block)
      : in_(in),
        leaves_(in.leaves),
        memory_(memory),
        stage_(in.out, memory.stage),
        block_(block),
        own_(boxOf(block)),
        bounds_(leaves_.blocks[block]) {}

  /// Finds pairs within the block. Each lane tests its box against the next sixteen boxes,
  /// wrapping around at the end of the block. The pair of two boxes that are half a block apart is
  /// kept only once.
  __device__ void searchItself() {
    put(lane(), own_);
    put(lane() + kWarp, own_);
    __syncwarp();
    std::uint32_t hits = testEight(lane() + 1) | testEight(lane() + 9) << 8;
    if constexpr (kIsScene) hits &= sharesWorld();
    emit(lane() < kWarp / 2 ? hits : hits & 0x7FFF, lane() + 1);
    __syncwarp();
  }

  /// Finds pairs with the later blocks that overlap this one. Each part searches every `parts`-th
  /// of these blocks. Part 0 begins with block `parts` - 1 of their list, because part 0 also
  /// searches the block itself.
  __device__ void searchLaterBlocks(std::uint32_t part) {
    next_ = part == 0 ? in_.parts - 1 : part - 1;
    if constexpr (kIsScene) {
      searchLastWorld();
      searchAllWorlds();
    } else {
      searchBlocks(block_ + 1, leaves_.blockCount);
    }
  }

  /// Ends the search. As a sample, every eighth block adds to `header->tests` how many blocks and
  /// boxes it has visited.
  __device__ void end() {
    if (!stage_.isOver()) stage_.flush();
    if (lane() == 0 && block_ % 8 == 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&in_.header->tests),
                static_cast<unsigned long long>(looks_));
  }

 private:
  /// One bit for each of the next sixteen boxes, wrapping around at the end of the block: whether
  /// the box shares a world with the lane's box.
  __device__ std::uint32_t sharesWorld() const {
    const std::uint32_t all = __ballot_sync(kAllLanes, own_.world == in_.worlds.count);
    const std::uint32_t same = __match_any_sync(kAllLanes, own_.world) | all;
    const std::uint32_t with = own_.world == in_.worlds.count ? kAllLanes : same;
    return __funnelshift_r(with, with, lane() + 1);
  }

  /// Finds pairs with later boxes, in the last world of this block.
  __device__ void searchLastWorld() {
    const std::uint32_t inOne = __ballot_sync(kAllLanes, own_.world < in_.worlds.count);
    if (inOne == 0) return;
    world_ = __shfl_sync(kAllLanes, own_.world, 31 - __clz(static_cast<int>(inOne)));
    const std::uint32_t end = in_.worlds.ends[world_];
    if (end <= (block_ + 1) * kWarp) return;
    if (own_.world != world_) own_ = emptyCorners();
    bounds_ = uniteWarp(own_);
    searchBlocks(block_ + 1, (end - 1) / kWarp + 1);
    own_ = boxOf(block_);
    bounds_ = leaves_.blocks[block_];
  }

  __device__ void searchAllWorlds() {
    world_ = in_.worlds.count;
    const std::uint32_t end = in_.worlds.ends[world_];
    if (end <= (block_ + 1) * kWarp) return;
    searchBlocks(max(block_ + 1, in_.worlds.begins[world_] / kWarp), (end - 1) / kWarp + 1);
  }

  /// Finds pairs with boxes of the later blocks [begin, end).
  __device__ void searchBlocks(std::uint32_t begin, std::uint32_t end) {
    visitGroups(
        leaves_, begin, end,
        [&](const Corners& bounds) {
          bool may = overlap(bounds, bounds_);
          if (in_.out.rule.filters != nullptr) may &= filtersMayMatch(bounds);
          return may;
        },
        [&](std::uint32_t first, std::uint32_t meet) { listBlocks(first, meet, begin, end); });
    searchListed();
    testRest();
  }

  /// Whether filters of boxes below these bounds may match filters of the warp's block. The
  /// block's filter is read each time, because ptxas for compute 8.0 spills if it is kept in
  /// registers.
  __device__ bool filtersMayMatch(const Corners& bounds) const {
    return shouldCollide(bounds.filter(), leaves_.blocks[block_].filter());
  }

  /// Adds blocks of the given groups to the list, if they are in [begin, end) and overlap this
  /// block. Reads the bounds of each group's blocks while it tests those of the previous group.
  __device__ void listBlocks(std::uint32_t first, std::uint32_t groups, std::uint32_t begin,
                             std::uint32_t end) {
    const auto blockOf = [&] { return (first + lowestBit(groups)) * kWarp + lane(); };
    std::uint32_t nextBlock = blockOf();
    Corners next = leaves_.blocks[nextBlock];
    while (groups != 0) {
      const std::uint32_t block = nextBlock;
      const Corners bounds = next;
      groups &= groups - 1;
      if (groups != 0) {
        nextBlock = blockOf();
        next = leaves_.blocks[nextBlock];
      }
      bool wants = block >= begin && overlap(bounds, bounds_);
      if (in_.out.rule.filters != nullptr) wants &= filtersMayMatch(leaves_.blocks[block]);
      if constexpr (kIsScene) wants &= block < end;  // without worlds only padding is past the end
      const std::uint32_t votes = __ballot_sync(kAllLanes, wants);
      if (wants) memory_.list[listed_ + before(votes)] = block;
      listed_ += countBits(votes);
      if (listed_ > WarpMemory::kList - kWarp) searchListed();
    }
  }

  /// Searches every `parts`-th block of the list, and empties the list. Reads each block while the
  /// previous one is tested.
  __device__ void searchListed() {
    __syncwarp();
    if (next_ < listed_ && !stage_.isOver()) {
      Corners next = boxOf(memory_.list[next_]);
      while (next_ < listed_) {
        const Corners box = next;
        next_ += in_.parts;
        if (next_ < listed_) next = boxOf(memory_.list[next_]);
        bool wants = overlap(box, bounds_);
        if constexpr (kIsScene) wants &= box.world == world_;
        push(box, wants);
        if (queued_ >= kWarp) testLast(kWarp);
        ++looks_;
      }
    }
    next_ -= next_ < listed_ ? next_ : listed_;
    listed_ = 0;
    __syncwarp();
  }
  __device__ Corners boxOf(std::uint32_t block) const {
    return leaves_.boxes[block * kWarp + lane()];
  }

  /// Tests the rest of the queue, padded with empty boxes to a multiple of eight.
  __device__ void testRest() {
    const std::uint32_t padded = (queued_ + 7) / 8 * 8;
    if (lane() < padded - queued_) put(queued_ + lane(), emptyCorners());
    queued_ = padded;
    if (queued_ != 0) testLast(queued_);
  }

  __device__ void put(std::uint32_t slot, const Corners& box) {
    memory_.minAndMaxX[slot] = {box.min[0], box.min[1], box.min[2], box.max[0]};
    memory_.maxYZ[slot] = {box.max[1], box.max[2]};
    memory_.id[slot] = box.id;
  }
  __device__ Corners queued(std::uint32_t slot) const {
    const float4 a = memory_.minAndMaxX[slot];
    const float2 b = memory_.maxYZ[slot];
    return {{a.x, a.y, a.z}, {a.w, b.x, b.y}, 0};
  }

  /// Queues the boxes of the lanes with `wants`.
  __device__ void push(const Corners& box, bool wants) {
    const std::uint32_t votes = __ballot_sync(kAllLanes, wants);
    if (wants) put(queued_ + before(votes), box);
    queued_ += countBits(votes);
    looks_ += countBits(votes);
  }

  /// Tests the last boxes of the queue against the warp's own boxes, and drops them.
  /// @param size a multiple of eight, at most 32
  __device__ void testLast(std::uint32_t size) {
    __syncwarp();
    queued_ -= size;
    std::uint32_t hits = 0;
    for (std::uint32_t k = 0; k < size; k += 8) hits |= testEight(queued_ + k) << k;
    emit(hits, queued_);
    __syncwarp();
  }
  __device__ std::uint32_t testEight(std::uint32_t k) const {
    std::uint32_t hits = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) hits |= overlap(queued(k + i), own_) ? 1u << i : 0u;
    return hits;
  }

  /// Stages the pairs of each lane's box: bit k of `hits` stands for box first + k of the queue. If
  /// the pairs do not fit, they are staged four per lane at a time.
  __device__ void emit(std::uint32_t hits, std::uint32_t first) {
    while (!stage_.isOver() && !emitAll(hits, first)) {
      std::uint32_t rest = hits;
      for (int k = 0; k < 4; ++k) rest &= rest - 1;
      emitAll(hits & ~rest, first);
      hits = rest;
    }
  }

  /// @return false if the pairs do not fit in the stage
  __device__ bool emitAll(std::uint32_t hits, std::uint32_t first) {
    const std::uint32_t end = sumUpToLane(countBits(hits));
    const std::uint32_t total = __shfl_sync(kAllLanes, end, kWarp - 1);
    if (total > kStaged) return false;
    stage_.reserve(total);
    Pair* to = stage_.at(end - countBits(hits));
    for (; hits != 0; hits &= hits - 1)
      *to++ = makePair(own_.id, memory_.id[first + lowestBit(hits)]);
    stage_.close(total);
    return true;
  }

  /// Returns lanesBefore(votes). Here a call of lanesBefore() makes ptxas spill a register.
  __device__ std::uint32_t before(std::uint32_t votes) const {
    return countBits(votes & ((1u << lane()) - 1));
  }

  const FindBlockPairs& in_;
  const LeafBlocks& leaves_;
  WarpMemory& memory_;
  PairStage<kIsScene> stage_;
  const std::uint32_t block_;
  Corners own_;
  Corners bounds_;
  std::uint32_t world_ = 0;  ///< world of the boxes that are tested against the warp's own boxes
  std::uint32_t listed_ = 0, queued_ = 0;
  std::uint32_t next_ = 0;  ///< index of the next block to search in the list
  std::uint32_t looks_ = 0;
};

/// Thread blocks per SM in a search without worlds. 0 leaves the number to ptxas. For compute 8.0
/// ptxas chooses a number at which it spills. For other GPUs it spills if a number is given.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 800
inline constexpr int kPlainBlocks = 3;
#else
inline constexpr int kPlainBlocks = 0;
#endif

/// The search of a DeviceScene requests five thread blocks per SM, because ptxas spills without a
/// number.
template <bool kIsScene>
static __global__ void __launch_bounds__(FindBlockPairs::kBlockThreads<kIsScene>,
                                         kIsScene ? 5 : kPlainBlocks)
    findBlockPairsKernel(FindBlockPairs in) {
  constexpr std::uint32_t kWarps = FindBlockPairs::kBlockThreads<kIsScene> / kWarp;
  __shared__ WarpMemory memory[kWarps];
  const std::uint32_t warps = in.leaves.blockCount * in.parts;
  const std::uint32_t warp = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (warp >= warps || in.header->extents > in.header->arguments.mostExtents) return;
  const std::uint32_t block = warp / in.parts, part = warp % in.parts;
  BlockSearch<kIsScene> search(in, memory[threadIdx.x / kWarp], block);
  if (part == 0) search.searchItself();
  search.searchLaterBlocks(part);
  search.end();
}

}  // namespace lbvh
