// SPDX-License-Identifier: Zlib
// Builds a hierarchy over boxes on a GPU. Stage 1 measures the scene, and chooses the grid. Stage 4
// packs boxes that are neighbours along the curve into blocks of 32. Above the blocks are the
// bounds of each block, of each group of 32 blocks, of each 32 groups, and so on, up to one root. A
// warp packs a block, and a thread block packs a group. The warp that completes the last child of a
// node also builds the node. So one launch builds all levels, bottom-up. A node's index gives its
// parent and children, so no links are needed.
//
// Any order gives the same pairs, so a step may keep the order of the previous step. Every box is
// packed at its position in the order. NaN boxes leave an empty slot. Oversized boxes are packed,
// too. They are sorted after the ordinary boxes, so they widen the bounds of only a few blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cub/util_type.cuh>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"
#include "broadphase/core/step_header.h"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/cuda/runtime/memory.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Stage 1 in one kernel. It finds the scene's bounds. The thread block that ends last chooses the
/// grid. The kernel also clears the counters of later kernels: call i of operator() measures box i,
/// and clears element i of their arrays.
struct MeasureStep {
  static constexpr std::uint32_t kEach = 4;  ///< elements per thread
  static constexpr std::uint32_t kTile = kEach * kThreads;

  MeasureScene scene;
  ChooseGrid chooseGrid;
  SceneBounds* partial;  ///< one sum for each thread block
  std::uint32_t* ended;  ///< number of thread blocks that have ended; 0 before and after the kernel
  View<std::uint32_t> counts;
  View<unsigned long long> words;
  View<std::uint32_t> closed{};  ///< LeafBlocks::closed

  std::uint32_t elements() const {
    const std::size_t n =
        std::max({scene.boxes.size(), counts.size(), words.size(), std::size_t{1}});
    return static_cast<std::uint32_t>(n);
  }
  static std::size_t blocks(std::size_t elements) { return (elements + kTile - 1) / kTile; }

  /// Copies the arguments over the bus, from host memory to the header.
  __device__ void fetchArguments() const {
    if (chooseGrid.arguments != nullptr) chooseGrid.header->arguments = *chooseGrid.arguments;
  }
  __device__ void finish(const SceneBounds& sum) const {
    *ended = 0;
    StepHeader* const header = chooseGrid.header;
    header->scene = sum;
    ChooseGrid choose = chooseGrid;
    if (choose.arguments != nullptr) choose.arguments = &header->arguments;
    choose(0);
  }

  __device__ SceneBounds operator()(std::uint32_t i) const {
    if (i < counts.size()) counts[i] = 0;
    if (i < words.size()) words[i] = 0;
    if (i < closed.size()) closed[i] = 0;  // always shorter than `boxes`
    return i < scene.boxes.size() ? scene(i) : SceneBounds{};
  }
};

/// Returns the sum over a warp to all of its lanes.
/// @param sum the lane's summand; its exponents have fewer than 57 bits
__device__ inline SceneBounds sumOfWarp(SceneBounds sum) {
  for (int axis = 0; axis < 3; ++axis) {
    sum.lo[axis] = leastOfLanes(sum.lo[axis]);
    sum.hi[axis] = greatestOfLanes(sum.hi[axis]);
  }
  constexpr int kLow = 26;  // number of low bits; their sum has fewer than 32 bits
  const auto low = static_cast<std::uint32_t>(sum.exponents) & ((1u << kLow) - 1);
  const auto high = static_cast<std::uint32_t>(sum.exponents >> kLow);
  const auto highs = static_cast<std::int32_t>(sumOfLanes(high));
  sum.exponents = (std::int64_t{highs} << kLow) + sumOfLanes(low);
  for (std::uint32_t* count : {&sum.measured, &sum.ordinary, &sum.oversized, &sum.nan})
    *count = sumOfLanes(*count);
  return sum;
}

/// Returns the sum over a thread block to its first thread.
/// @param warps shared memory, which may be reused after the next barrier
__device__ inline SceneBounds sumOfBlock(
    SceneBounds sum, cub::Uninitialized<SceneBounds> (&warps)[kThreads / kWarp]) {
  sum = sumOfWarp(sum);
  if (lane() == 0) warps[threadIdx.x / kWarp].Alias() = sum;
  __syncthreads();
  if (threadIdx.x != 0) return sum;
  for (std::uint32_t warp = 1; warp < kThreads / kWarp; ++warp) sum += warps[warp].Alias();
  return sum;
}

static __global__ void __launch_bounds__(kThreads) measureKernel(MeasureStep step) {
  __shared__ cub::Uninitialized<SceneBounds> warps[kThreads / kWarp];
  __shared__ bool isLast;
  if (blockIdx.x == 0 && threadIdx.x == kWarp) step.fetchArguments();
  SceneBounds sum;
  for (std::uint32_t k = 0; k < MeasureStep::kEach; ++k)
    sum += step((blockIdx.x * MeasureStep::kEach + k) * kThreads + threadIdx.x);
  sum = sumOfBlock(sum, warps);
  if (threadIdx.x == 0) {
    step.partial[blockIdx.x] = sum;
    __threadfence();  // publishes the sum before other blocks may read it
    isLast = atomicAdd(step.ended, 1u) + 1 == gridDim.x;
    __threadfence();  // the sums of other blocks are read only after this
  }
  __syncthreads();
  if (!isLast) return;
  sum = SceneBounds{};
  for (std::uint32_t i = threadIdx.x; i < gridDim.x; i += kThreads) sum += step.partial[i];
  sum = sumOfBlock(sum, warps);
  if (threadIdx.x == 0) step.finish(sum);
}

/// A box or bounds in registers. An empty slot has kNullIndex as `id` and `world`.
struct Corners {
  float min[3];
  float max[3];
  std::uint32_t id;         ///< for bounds: bitwise or of the groups of the boxes below
  std::uint32_t world = 0;  ///< its rank (device_input.h); for bounds: bitwise or of the masks

  /// For bounds: the bitwise or of the groups of the boxes below, and the bitwise or of their
  /// masks. Meaningless without filters.
  __device__ Filter filter() const {
    return {static_cast<std::int32_t>(id), static_cast<std::int32_t>(world)};
  }
};

/// Boxes as two arrays, so that a warp's reads are coalesced.
struct CornerArrays {
  float4* low;   ///< minimum and id of each box
  float4* high;  ///< maximum and world of each box

  __device__ Corners operator[](std::uint32_t i) const {
    const float4 a = low[i], b = high[i];
    return {{a.x, a.y, a.z}, {b.x, b.y, b.z}, __float_as_uint(a.w), __float_as_uint(b.w)};
  }
  __device__ void put(std::uint32_t i, const Corners& box) const {
    low[i] = {box.min[0], box.min[1], box.min[2], __uint_as_float(box.id)};
    high[i] = {box.max[0], box.max[1], box.max[2], __uint_as_float(box.world)};
  }
};

/// Boxes, and the bounds above them. Boxes are level 0, blocks level 1, and groups level 2. A node
/// of level k has 32 children of level k - 1. Slots and blocks are padded to whole groups with
/// boxes that overlap nothing. The highest level has at most 32 nodes. Their parent is the root.
struct LeafBlocks {
  CornerArrays boxes;   ///< 32 per block
  CornerArrays blocks;  ///< bounds, 32 per group
  CornerArrays groups;  ///< bounds, followed by the bounds of each higher level
  std::uint32_t blockCount, groupCount;
  View<std::uint32_t> closed;  ///< by node above the groups: number of built children

  /// @param level at least 2
  GPULBVH_HD std::uint32_t nodesOf(std::uint32_t level) const {
    return ((blockCount - 1) >> kWarpBits * (level - 1)) + 1;
  }
};

/// Visits the groups that have blocks in [begin, end) and bounds for which meets() is true. It
/// calls visit(first, votes), in ascending order. Bit k of `votes` stands for group first + k. The
/// search starts at the lowest node above all these blocks. All lanes must call this function.
/// @param meets whether the search must go on below a node with these bounds
template <class Meets, class Visit>
__device__ inline void visitGroups(const LeafBlocks& leaves, std::uint32_t begin, std::uint32_t end,
                                   const Meets& meets, const Visit& visit) {
  if (begin >= end) return;
  const auto ancestor = [](std::uint32_t block, std::uint32_t level) {
    return block >> kWarpBits * (level - 1);
  };
  std::uint32_t level = 2, levelBegin = 0;
  for (; ancestor(begin, level + 1) != ancestor(end - 1, level + 1); ++level)
    levelBegin += leaves.nodesOf(level);
  const std::uint32_t highest = level;
  std::uint32_t parent = ancestor(begin, level + 1);
  const auto childrenThatMeet = [&] {
    const std::uint32_t node = parent * kWarp + lane();
    const bool asks = node >= ancestor(begin, level) && node <= ancestor(end - 1, level);
    return __ballot_sync(kAllLanes, asks && meets(leaves.groups[levelBegin + node]));
  };
  std::uint32_t votes = childrenThatMeet();
  std::uint32_t waiting = 0;  // in lane k: the votes of level k that are still to be visited
  for (;;) {
    while (votes != 0 && level > 2) {  // go down to the children of the first node in `votes`
      parent = parent * kWarp + lowestBit(votes);
      waiting = lane() == level ? votes & (votes - 1) : waiting;
      --level;
      levelBegin -= leaves.nodesOf(level);
      votes = childrenThatMeet();
    }
    if (votes != 0) {
      visit(parent * kWarp, votes);
      // Both variables have these values already, but as constants they need no registers during
      // visit().
      level = 2, levelBegin = 0;
    }
    do {  // go up
      if (level == highest) return;
      levelBegin += leaves.nodesOf(level);
      ++level;
      parent /= kWarp;
      votes = __shfl_sync(kAllLanes, waiting, static_cast<int>(level));
    } while (votes == 0);
  }
}

/// The boxes of the world with rank r are in slots [begins[r], ends[r]). A world without boxes has
/// an end of 0.
struct WorldSlots {
  std::uint32_t count;  ///< number of worlds; also the rank of boxes in all worlds
  std::uint32_t* begins;
  std::uint32_t* ends;
};

/// What queries need from the last search. The search itself writes this struct on the device, so a
/// search that a graph replays writes it, too.
struct Searched {
  LeafBlocks leaves;
  WorldSlots worlds;    ///< slots of the worlds, if `hasWorlds`
  bool hasWorlds;       ///< false: there is one world
  std::uint64_t boxes;  ///< number of boxes; larger than every index
};

/// If slot i has the first box of a world, thread i writes the world's begin. If slot i has the
/// last box of a world, thread i writes the world's end. The caller must set all ends to 0.
struct MarkWorlds {
  CornerArrays boxes;
  std::uint32_t size;
  WorldSlots worlds;

  __device__ std::uint32_t worldAt(std::uint32_t i) const {
    return i < size ? __float_as_uint(boxes.high[i].w) : kNullIndex;
  }
  __device__ void operator()(std::uint32_t i) const {
    const std::uint32_t world = worldAt(i);
    if (world > worlds.count) return;
    if (i == 0 || worldAt(i - 1) != world) worlds.begins[world] = i;
    if (worldAt(i + 1) != world) worlds.ends[world] = i + 1;
  }
};

/// The memory layout of LeafBlocks for n boxes.
struct LeafBlockLayout {
  std::size_t groups, blocks, slots;
  std::size_t above = 0;  ///< nodes of all levels between the groups and the root

  explicit LeafBlockLayout(std::size_t n)
      : groups((n + kWarp * kWarp - 1) / (kWarp * kWarp)),
        blocks(groups * kWarp),
        slots(blocks * kWarp) {
    for (std::size_t nodes = groups; nodes > kWarp;) {
      nodes = (nodes + kWarp - 1) / kWarp;
      above += nodes;
    }
  }

  /// The size of the memory in elements of type float4, including LeafBlocks::closed.
  std::size_t corners() const { return 2 * (slots + blocks + groups + above) + (above + 3) / 4; }

  /// @param at memory with corners() elements
  LeafBlocks in(float4* at, std::size_t n) const {
    const auto take = [&at](std::size_t count) {
      const CornerArrays arrays{at, at + count};
      at += 2 * count;
      return arrays;
    };
    LeafBlocks leaves{};
    leaves.boxes = take(slots);
    leaves.blocks = take(blocks);
    leaves.groups = take(groups + above);
    leaves.closed = {reinterpret_cast<std::uint32_t*>(at), above};
    leaves.blockCount = static_cast<std::uint32_t>((n + kWarp - 1) / kWarp);
    leaves.groupCount = static_cast<std::uint32_t>(groups);
    return leaves;
  }
};

class LeafBlockBuffers {
 public:
  explicit LeafBlockBuffers(DeviceMemory memory) : corners_(memory) {}

  LeafBlocks ensure(std::size_t n) {
    const LeafBlockLayout layout(n);
    return layout.in(corners_.ensure(layout.corners()).data(), n);
  }

  const void* data() const { return corners_.data(); }

 private:
  DeviceBuffer<float4> corners_;
};

__device__ inline Corners cornersOf(Aabb box, std::uint32_t id, std::uint32_t world) {
  return {{box.min[0], box.min[1], box.min[2]}, {box.max[0], box.max[1], box.max[2]}, id, world};
}

/// A box that overlaps nothing. leastOfLanes() and greatestOfLanes() ignore it.
__device__ inline Corners emptyCorners() {
  const float greatest = __int_as_float(0x7FFFFFFF), least = __int_as_float(-1);  // NaNs
  return {{greatest, greatest, greatest}, {least, least, least}, kNullIndex, kNullIndex};
}

/// Returns the common bounds of the boxes of all lanes to all lanes.
__device__ inline Corners uniteWarp(Corners box) {
  for (int axis = 0; axis < 3; ++axis) {
    box.min[axis] = leastOfLanes(box.min[axis]);
    box.max[axis] = greatestOfLanes(box.max[axis]);
  }
  return box;
}

/// Sets the filter of bounds. Its group is the bitwise or of the groups of all lanes, and its mask
/// is the bitwise or of their masks.
__device__ inline void uniteFilters(Corners& bounds, Filter filter) {
  bounds.id = orOfLanes(static_cast<std::uint32_t>(filter.group));
  bounds.world = orOfLanes(static_cast<std::uint32_t>(filter.mask));
}

/// The bounds of the boxes of all lanes, with their filters.
/// @param filters by box; null: no box has a filter
__device__ inline Corners boundsOf(const Corners& box, const Filter* filters) {
  Corners bounds = uniteWarp(box);
  if (filters != nullptr)
    uniteFilters(bounds, box.id != kNullIndex ? filters[box.id] : Filter{0, 0});
  return bounds;
}

/// The common bounds of the bounds of all lanes. @param isThere whether the lane has bounds
__device__ inline Corners boundsAbove(const Corners& below, bool isThere) {
  Corners bounds = uniteWarp(below);
  uniteFilters(bounds, isThere ? below.filter() : Filter{0, 0});
  return bounds;
}

struct PackBlocks {
  /// Number of threads of a thread block. Each of them packs one box.
  static constexpr std::uint32_t kGroup = kWarp * kWarp;

  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< indices of the boxes, in the order along the curve
  LeafBlocks leaves;
  StepHeader* header;
  const std::uint32_t* worlds = nullptr;  ///< by box: its rank; null: there is one world
  const Filter* filters = nullptr;        ///< by box; null: no box has a filter

  __device__ Corners cornersAt(std::uint32_t i) const {
    if (i >= boxes.size()) return emptyCorners();
    const std::uint32_t id = ids[i];
    const Aabb box = boxes[id];
    return classify(box) != BoxClass::nan ? cornersOf(box, id, worlds != nullptr ? worlds[id] : 0)
                                          : emptyCorners();
  }
};

/// Adds the extents of a warp's blocks to the header. Their sum tells whether the order is still
/// useful. An extent is in units of 1 / 65,536 of the scene's length. Integers are added, so the
/// sum does not depend on the order of the additions. The extent of a block is the sum of its three
/// sides, but at most three lengths of the scene, because the block may have an oversized box.
__device__ inline void addExtents(const Corners& bounds, StepHeader* header) {
  float extent = 0;
  for (int axis = 0; axis < 3; ++axis) extent += bounds.max[axis] - bounds.min[axis];
  extent *= 65536 * header->grid.perLength;
  const std::uint32_t sum =
      sumOfLanes(extent > 0 ? static_cast<std::uint32_t>(fminf(extent, 3 * 65536)) : 0u);
  if (threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&header->extents),
              static_cast<unsigned long long>(sum));
}

/// Builds the nodes above a group, up to the first that has a child which is not built yet. Must be
/// called by the warp that has built the group.
__device__ inline void buildAbove(const LeafBlocks& leaves, std::uint32_t group) {
  CornerArrays nodes = leaves.groups;
  std::uint32_t* closed = leaves.closed.data();
  std::uint32_t node = group, count = leaves.groupCount;  // number of nodes of this level
  while (count > kWarp) {
    node /= kWarp;
    bool isLast = false;
    if (lane() == 0) {
      __threadfence();  // publishes the child before another warp may read it
      isLast = atomicAdd(&closed[node], 1u) + 1 == min(kWarp, count - node * kWarp);
      __threadfence();  // the children of other warps are read only after this
    }
    if (!__any_sync(kAllLanes, isLast)) return;
    // A vote does not order memory accesses. After __syncwarp all lanes may read what lane 0 has
    // acquired.
    __syncwarp();
    const std::uint32_t child = node * kWarp + lane();
    const bool isThere = child < count;
    const Corners below = isThere ? nodes[child] : emptyCorners();
    const Corners bounds = boundsAbove(below, isThere);
    nodes = {nodes.low + count, nodes.high + count};
    count = (count + kWarp - 1) / kWarp;
    closed += count;
    if (lane() == 0) nodes.put(node, bounds);
  }
}

/// Builds a group with a warp. Then builds the nodes above it whose children are all built.
/// @param block the bounds of the group's blocks, one per lane
__device__ inline void buildGroup(const LeafBlocks& leaves, std::uint32_t group,
                                  const Corners& block, StepHeader* header) {
  const Corners bounds = boundsAbove(block, true);
  if (lane() == 0) leaves.groups.put(group, bounds);
  addExtents(block, header);
  buildAbove(leaves, group);
}

static __global__ void __launch_bounds__(PackBlocks::kGroup) packBlocksKernel(PackBlocks pack) {
  __shared__ Corners bounds[kWarp];
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t i = blockIdx.x * PackBlocks::kGroup + threadIdx.x;
  const Corners box = pack.cornersAt(i);
  pack.leaves.boxes.put(i, box);
  const Corners block = boundsOf(box, pack.filters);
  if (lane() == 0) {
    pack.leaves.blocks.put(i / kWarp, block);
    bounds[warp] = block;
  }
  __syncthreads();
  if (warp == 0) buildGroup(pack.leaves, blockIdx.x, bounds[lane()], pack.header);
}

/// Computes the bounds of the blocks with changed boxes again, and of all groups and nodes above.
/// The other blocks keep their bounds.
struct PackChanged {
  LeafBlocks leaves;
  StepHeader* header;
  const std::uint32_t* changed;  ///< by block: one bit for each slot with a changed box
  const Filter* filters;         ///< by box; null: no box has a filter
};

static __global__ void __launch_bounds__(PackBlocks::kGroup) packChangedKernel(PackChanged pack) {
  __shared__ Corners bounds[kWarp];
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t block = blockIdx.x * kWarp + warp;
  if (pack.changed[block] != 0) {
    const Corners box = pack.leaves.boxes[block * kWarp + lane()];
    const Corners united = boundsOf(box, pack.filters);
    if (lane() == 0) {
      pack.leaves.blocks.put(block, united);
      bounds[warp] = united;
    }
  } else if (lane() == 0) {
    bounds[warp] = pack.leaves.blocks[block];
  }
  __syncthreads();
  if (warp == 0) buildGroup(pack.leaves, blockIdx.x, bounds[lane()], pack.header);
}

}  // namespace lbvh
