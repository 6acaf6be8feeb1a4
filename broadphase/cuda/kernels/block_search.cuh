// SPDX-License-Identifier: Zlib
// Stage 5 on a GPU: pairs by leaf blocks. A warp owns a block, or a part of its search. It tests 32
// bounds at a time, queues the boxes of later blocks that meet its block's bounds, and tests each
// against its 32 own boxes, a lane for each: all lanes have work, and what they read lies in lines.
//
// Worlds follow each other in the order, then come the boxes that are in all of them. So a block
// shares only its last world with later blocks, up to that world's end; and it meets the boxes that
// are in all worlds.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_stage.cuh"
#include "broadphase/types.h"

namespace lbvh {

struct FindBlockPairs {
  LeafBlocks leaves;
  FoundPairs out;
  StepHeader* header;
  std::uint32_t parts;  ///< warps that share the search of a block
  WorldSlots worlds{};  ///< for a search with worlds

  /// Few blocks are not enough warps for a GPU: more of them share a block's search, at the price
  /// of instructions that nobody waits for.
  static std::uint32_t partsFor(std::size_t boxes) {
    return boxes <= 2048 ? 8 : boxes <= 8192 ? 4 : boxes <= 65536 ? 2 : 1;
  }

  /// Of threads, to launch.
  std::size_t blocks() const {
    constexpr std::size_t kWarps = kThreads / kWarp;
    return (std::size_t{leaves.blockCount} * parts + kWarps - 1) / kWarps;
  }
};

/// What a warp keeps in shared memory.
struct WarpMemory {
  static constexpr std::uint32_t kQueue = 2 * kWarp + 8;  ///< 31 left over, 32 more, padding
  static constexpr std::uint32_t kList = 2 * kWarp;

  // Boxes that meet the block, not yet tested. Each is read by all lanes at once, and a read gives
  // 128 bytes a cycle to all lanes together: so nothing is read that the test does not need.
  float4 minAndMaxX[kQueue];
  float2 maxYZ[kQueue];
  std::uint32_t id[kQueue];
  std::uint32_t list[kList];  ///< blocks that meet this one, not yet searched
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

  /// Pairs within the block: each lane's box with the sixteen behind it, around the block. Those
  /// half a block apart meet once.
  __device__ void searchItself() {
    put(lane(), own_);
    put(lane() + kWarp, own_);
    __syncwarp();
    std::uint32_t hits = testEight(lane() + 1) | testEight(lane() + 9) << 8;
    if constexpr (kIsScene) hits &= sharesWorld();
    emit(lane() < kWarp / 2 ? hits : hits & 0x7FFF, lane() + 1);
    __syncwarp();
  }

  /// Pairs with the later blocks that meet this one: every `parts`-th of their list. Part 0 has its
  /// first turn last, as it searches the block itself, too.
  __device__ void searchLaterBlocks(std::uint32_t part) {
    next_ = part == 0 ? in_.parts - 1 : part - 1;
    if constexpr (kIsScene) {
      searchLastWorld();
      searchAllWorlds();
    } else {
      searchBlocks(block_ + 1, leaves_.blockCount);
    }
  }

  /// Ends the search. A sample of the blocks tells how much they had to look at.
  __device__ void end() {
    if (!stage_.isOver()) stage_.flush();
    if (lane() == 0 && block_ % 8 == 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&in_.header->looks),
                static_cast<unsigned long long>(looks_));
  }

 private:
  /// Of the sixteen boxes behind the lane's, around the block: which are in a world with it.
  __device__ std::uint32_t sharesWorld() const {
    const std::uint32_t all = __ballot_sync(kAllLanes, own_.world == in_.worlds.count);
    const std::uint32_t same = __match_any_sync(kAllLanes, own_.world) | all;
    const std::uint32_t with = own_.world == in_.worlds.count ? kAllLanes : same;
    return __funnelshift_r(with, with, lane() + 1);
  }

  /// Pairs of two boxes of the block's last world.
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

  /// Pairs with boxes that are in all worlds.
  __device__ void searchAllWorlds() {
    world_ = in_.worlds.count;
    const std::uint32_t end = in_.worlds.ends[world_];
    if (end <= (block_ + 1) * kWarp) return;
    searchBlocks(max(block_ + 1, in_.worlds.begins[world_] / kWarp), (end - 1) / kWarp + 1);
  }

  /// Pairs with boxes of blocks [begin, end), which are later ones.
  __device__ void searchBlocks(std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t groups = (end + kWarp - 1) / kWarp;
    for (std::uint32_t first = begin / kWarp / kWarp * kWarp; first < groups; first += kWarp) {
      const std::uint32_t meet = groupsThatMeet(first, begin / kWarp, groups);
      if (meet != 0) listBlocks(first, meet, begin, end);
    }
    searchListed();
    testRest();
  }

  __device__ std::uint32_t groupsThatMeet(std::uint32_t first, std::uint32_t begin,
                                          std::uint32_t end) const {
    const std::uint32_t g = first + lane();
    const bool asks = g >= begin && g < end;
    return __ballot_sync(kAllLanes, asks && overlap(leaves_.groups[g], bounds_));
  }

  /// Lists the blocks of some groups that meet this one, of [begin, end). Reads each group's bounds
  /// while those of the one before are tested.
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
      if constexpr (kIsScene) wants &= block < end;  // else nothing is behind it
      const std::uint32_t votes = __ballot_sync(kAllLanes, wants);
      if (wants) memory_.list[listed_ + before(votes)] = block;
      listed_ += countBits(votes);
      if (listed_ > WarpMemory::kList - kWarp) searchListed();
    }
  }

  /// Searches every parts-th block of the list, and empties it. Reads each block while the one
  /// before is tested.
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

  /// What is left in the queue, with empty boxes up to a multiple of eight.
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

  /// Queues the boxes of the lanes that want to.
  __device__ void push(const Corners& box, bool wants) {
    const std::uint32_t votes = __ballot_sync(kAllLanes, wants);
    if (wants) put(queued_ + before(votes), box);
    queued_ += countBits(votes);
    looks_ += countBits(votes);
  }

  /// Tests the last boxes of the queue against the own ones, and drops them.
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

  /// Stages the pairs of each lane's box: bit k of hits is the queue's box first + k. More than the
  /// stage holds go four a lane at a time.
  __device__ void emit(std::uint32_t hits, std::uint32_t first) {
    while (!stage_.isOver() && !emitAll(hits, first)) {
      std::uint32_t rest = hits;
      for (int k = 0; k < 4; ++k) rest &= rest - 1;
      emitAll(hits & ~rest, first);
      hits = rest;
    }
  }

  /// @return false if they are too many for the stage
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

  /// lanesBefore, which if called itself makes ptxas spill a register here.
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
  std::uint32_t world_ = 0;  ///< of the boxes that are searched for
  std::uint32_t listed_ = 0, queued_ = 0;
  std::uint32_t next_ = 0;  ///< of the list
  std::uint32_t looks_ = 0;
};

/// Told that five blocks of a scene's search share an SM, ptxas spills nothing; else it does.
template <bool kIsScene>
static __global__ void __launch_bounds__(kThreads, kIsScene ? 5 : 0)
    findBlockPairsKernel(FindBlockPairs in) {
  __shared__ WarpMemory memory[kThreads / kWarp];
  const std::uint32_t warps = in.leaves.blockCount * in.parts;
  const std::uint32_t warp = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  if (warp >= warps || in.header->extents > in.header->arguments.mostExtents) return;
  const std::uint32_t block = warp / in.parts, part = warp % in.parts;
  BlockSearch<kIsScene> search(in, memory[threadIdx.x / kWarp], block);
  if (part == 0) search.searchItself();
  search.searchLaterBlocks(part);
  search.end();
}

}  // namespace lbvh
