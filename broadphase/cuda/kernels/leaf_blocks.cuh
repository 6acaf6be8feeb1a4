// SPDX-License-Identifier: Zlib
// Stage 4 on a GPU: boxes that follow each other along the curve, packed into blocks of 32, and two
// levels of bounds above: of each block, and of each group of 32 blocks. A warp packs a block, a
// thread block a group: no atomics, no links, no second launch.
//
// Any order gives the same pairs. So every box is packed wherever it lies in the order, and an
// order may be kept over steps. NaN boxes leave an empty slot. Oversized boxes are packed like
// others: sorted behind all of them, they spoil the bounds of a few blocks only.
#pragma once

#include <cstdint>

#include "broadphase/core/morton.h"
#include "broadphase/core/step_header.h"
#include "broadphase/cuda/kernels/warp.cuh"
#include "broadphase/cuda/runtime/buffer.cuh"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// A box or bounds in registers. For bounds and empty slots `id` and `world` say nothing.
struct Corners {
  float min[3];
  float max[3];
  std::uint32_t id;
  std::uint32_t world = 0;  ///< its rank, see device_input.h
};

/// Boxes as two arrays, which a warp reads in whole lines.
struct CornerArrays {
  float4* low;   ///< and the id
  float4* high;  ///< and the world

  __device__ Corners operator[](std::uint32_t i) const {
    const float4 a = low[i], b = high[i];
    return {{a.x, a.y, a.z}, {b.x, b.y, b.z}, __float_as_uint(a.w), __float_as_uint(b.w)};
  }
  __device__ void put(std::uint32_t i, const Corners& box) const {
    low[i] = {box.min[0], box.min[1], box.min[2], __uint_as_float(box.id)};
    high[i] = {box.max[0], box.max[1], box.max[2], __uint_as_float(box.world)};
  }
};

/// The three levels. Slots and blocks are padded to whole groups with what overlaps nothing.
struct LeafBlocks {
  CornerArrays boxes;   ///< 32 a block
  CornerArrays blocks;  ///< bounds, 32 a group
  CornerArrays groups;  ///< bounds
  std::uint32_t blockCount, groupCount;
};

/// Where the boxes of each world lie, by its rank: slots [begins, ends). Worlds without boxes have
/// an end of 0.
struct WorldSlots {
  std::uint32_t count;  ///< worlds; this rank is that of the boxes in all of them
  std::uint32_t* begins;
  std::uint32_t* ends;
};

/// What a search leaves for queries. It lies on the device, as a graph may have searched last.
struct Searched {
  LeafBlocks leaves;
  WorldSlots worlds;    ///< where they lie, if the boxes have some
  bool hasWorlds;       ///< else there is one
  std::uint64_t boxes;  ///< indices are less
};

/// Element i: where a world begins or ends at slot i. The ends were 0 before.
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

/// For n boxes.
struct LeafBlockLayout {
  std::size_t groups, blocks, slots;

  explicit LeafBlockLayout(std::size_t n)
      : groups((n + kWarp * kWarp - 1) / (kWarp * kWarp)),
        blocks(groups * kWarp),
        slots(blocks * kWarp) {}

  std::size_t corners() const { return 2 * (slots + blocks + groups); }

  /// @param at memory for corners()
  LeafBlocks in(float4* at, std::size_t n) const {
    const auto take = [&at](std::size_t count) {
      const CornerArrays arrays{at, at + count};
      at += 2 * count;
      return arrays;
    };
    LeafBlocks leaves{};
    leaves.boxes = take(slots);
    leaves.blocks = take(blocks);
    leaves.groups = take(groups);
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
    return layout.in(corners_.ensure(layout.corners()).data, n);
  }

  const void* data() const { return corners_.data(); }

 private:
  DeviceBuffer<float4> corners_;
};

__device__ inline Corners cornersOf(Aabb box, std::uint32_t id, std::uint32_t world) {
  return {{box.min[0], box.min[1], box.min[2]}, {box.max[0], box.max[1], box.max[2]}, id, world};
}

/// Overlaps nothing, and is passed over by fminf and fmaxf.
__device__ inline Corners emptyCorners() {
  const float nan = __int_as_float(0x7FFFFFFF);
  return {{nan, nan, nan}, {nan, nan, nan}, kNullIndex, kNullIndex};
}

/// The bounds of what the lanes hold, on all lanes.
__device__ inline Corners uniteWarp(Corners box) {
  for (int step = 16; step > 0; step /= 2)
    for (int axis = 0; axis < 3; ++axis) {
      box.min[axis] = fminf(box.min[axis], __shfl_xor_sync(kAllLanes, box.min[axis], step));
      box.max[axis] = fmaxf(box.max[axis], __shfl_xor_sync(kAllLanes, box.max[axis], step));
    }
  return box;
}

struct PackBlocks {
  static constexpr std::uint32_t kGroup = kWarp * kWarp;  ///< boxes, and threads

  View<const Aabb> boxes;
  const std::uint32_t* ids;  ///< in the order of the curve
  LeafBlocks leaves;
  StepHeader* header;
  const std::uint32_t* worlds = nullptr;  ///< by box: its rank; null: there is one world

  __device__ Corners cornersAt(std::uint32_t i) const {
    if (i >= boxes.size) return emptyCorners();
    const std::uint32_t id = ids[i];
    const Aabb box = boxes[id];
    return classify(box) != BoxClass::nan ? cornersOf(box, id, worlds != nullptr ? worlds[id] : 0)
                                          : emptyCorners();
  }

  /// A warp's. How large blocks are tells whether the order still is of use. In 65,536ths of the
  /// scene, so that the order in which they are added does not matter. One with an oversized box
  /// counts as if it reached through the scene.
  __device__ void addExtents(const Corners& bounds) const {
    float extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent += bounds.max[axis] - bounds.min[axis];
    extent *= 65536 * header->grid.perLength;
    const std::uint32_t sum =
        sumOfLanes(extent > 0 ? static_cast<std::uint32_t>(fminf(extent, 3 * 65536)) : 0u);
    if (threadIdx.x == 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&header->extents),
                static_cast<unsigned long long>(sum));
  }
};

static __global__ void __launch_bounds__(PackBlocks::kGroup) packBlocksKernel(PackBlocks pack) {
  __shared__ Corners bounds[kWarp];
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t i = blockIdx.x * PackBlocks::kGroup + threadIdx.x;
  const Corners box = pack.cornersAt(i);
  pack.leaves.boxes.put(i, box);
  const Corners block = uniteWarp(box);
  if (lane() == 0) {
    pack.leaves.blocks.put(i / kWarp, block);
    bounds[warp] = block;
  }
  __syncthreads();
  if (warp != 0) return;
  const Corners group = uniteWarp(bounds[lane()]);
  if (lane() == 0) pack.leaves.groups.put(blockIdx.x, group);
  pack.addExtents(bounds[lane()]);
}

}  // namespace lbvh
