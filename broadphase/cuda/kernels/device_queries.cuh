// SPDX-License-Identifier: Zlib
// Tests rays and boxes against the leaf blocks of a search, one warp per query. The warp goes down
// from the root. At each node it tests the bounds of the 32 children at once. At a block it tests
// the 32 boxes.
#pragma once

#include <cstdint>

#include "broadphase/cuda/kernels/leaf_blocks.cuh"
#include "broadphase/cuda/kernels/pair_lists.cuh"
#include "broadphase/device_query.h"
#include "broadphase/device_scene.h"
#include "broadphase/ray_test.h"
#include "broadphase/types.h"

namespace lbvh {

class QueryWalk {
 public:
  __device__ explicit QueryWalk(const Searched* in) : in_(*in) {}

  /// On all lanes, calls visit(box, isHit) for all boxes that a query of this world hits, and for
  /// some boxes that it misses.
  /// @return false if there is no such world
  template <class Meets, class Visit>
  __device__ bool run(std::uint32_t world, const Meets& meets, const Visit& visit) const {
    if (world != kAllWorlds && world >= in_.worlds.count) return false;
    if (world == kAllWorlds || !in_.hasWorlds) {
      walk(0, in_.leaves.blockCount, kAllWorlds, meets, visit);
      return true;
    }
    walkWorld(world, meets, visit);
    walkWorld(in_.worlds.count, meets, visit);
    return true;
  }

 private:
  template <class Meets, class Visit>
  __device__ void walkWorld(std::uint32_t rank, const Meets& meets, const Visit& visit) const {
    const std::uint32_t end = in_.worlds.ends[rank];
    if (end == 0) return;
    walk(in_.worlds.begins[rank] / kWarp, (end - 1) / kWarp + 1, rank, meets, visit);
  }

  /// Walks through blocks [begin, end).
  /// @param rank only boxes of this rank can be hit; kAllWorlds: all boxes
  template <class Meets, class Visit>
  __device__ void walk(std::uint32_t begin, std::uint32_t end, std::uint32_t rank,
                       const Meets& meets, const Visit& visit) const {
    const LeafBlocks& leaves = in_.leaves;
    visitGroups(leaves, begin, end, meets, [&](std::uint32_t first, std::uint32_t near) {
      for (; near != 0; near &= near - 1) {
        const std::uint32_t b = (first + lowestBit(near)) * kWarp + lane();
        const bool isNear = b >= begin && b < end && meets(leaves.blocks[b]);
        std::uint32_t blocks = __ballot_sync(kAllLanes, isNear);
        for (; blocks != 0; blocks &= blocks - 1) {
          const std::uint32_t block = b - lane() + lowestBit(blocks);
          const Corners box = leaves.boxes[block * kWarp + lane()];
          visit(box, (rank == kAllWorlds || box.world == rank) && meets(box));
        }
      }
    });
  }

  const Searched in_;
};

/// A batch of rays. test(i) returns a function that tells whether query i hits a box or bounds.
struct RayQueries {
  RayBatch batch;

  GPULBVH_HD std::size_t size() const { return batch.rays.size(); }
  __device__ std::uint32_t world(std::uint32_t i) const {
    return batch.worlds != nullptr ? batch.worlds[i] : kAllWorlds;
  }
  __device__ auto test(std::uint32_t i) const { return RayTest(batch.rays[i]); }
};
/// A batch of boxes, with the same members as RayQueries.
struct BoxQueries {
  BoxBatch batch;

  struct Test {
    Aabb box;
    __device__ bool operator()(const Corners& other) const { return overlap(box, other); }
  };
  GPULBVH_HD std::size_t size() const { return batch.boxes.size(); }
  __device__ std::uint32_t world(std::uint32_t i) const {
    return batch.worlds != nullptr ? batch.worlds[i] : kAllWorlds;
  }
  __device__ auto test(std::uint32_t i) const { return Test{batch.boxes[i]}; }
};

__device__ inline std::uint32_t queryOfWarp() {
  return blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
}

/// Finds hits, as unsorted pairs of query and box.
template <class Queries>
struct FindHits {
  Queries queries;
  const Searched* searched;
  FoundPairs out;
  std::uint32_t* errors;
};

template <class Queries>
static __global__ void __launch_bounds__(kThreads, 8) findHitsKernel(FindHits<Queries> in) {
  __shared__ Pair memory[kThreads / kWarp][kStaged];
  const std::uint32_t query = queryOfWarp();
  if (query >= in.queries.size()) return;
  PairStage<true> stage(in.out, memory[threadIdx.x / kWarp]);
  const auto test = in.queries.test(query);
  const auto meets = [&](const Corners& box) { return !stage.isOver() && test(box); };
  const auto visit = [&](const Corners& box, bool isHit) {
    const std::uint32_t hits = __ballot_sync(kAllLanes, isHit);
    stage.reserve(countBits(hits));
    if (isHit) *stage.at(lanesBefore(hits)) = {query, box.id};
    stage.close(countBits(hits));
  };
  const bool isThere = QueryWalk(in.searched).run(in.queries.world(query), meets, visit);
  if (!isThere && lane() == 0) atomicOr(in.errors, bitOf(DeviceError::worldOutOfRange));
  if (!stage.isOver()) stage.flush();
}

struct FindClosest {
  RayQueries queries;
  const Searched* searched;
  RayHit* hits;
};

static __global__ void __launch_bounds__(kThreads, 8) findClosestKernel(FindClosest in) {
  const std::uint32_t query = queryOfWarp();
  if (query >= in.queries.size()) return;
  const RayTest test = in.queries.test(query);
  float nearest = __int_as_float(0x7F800000);  // smallest distance of all lanes
  RayHit best{kNullIndex, nearest};            // best hit of the lane
  const auto meets = [&](const Corners& box) {
    const float distance = test.distanceTo(box);
    return distance >= 0 && distance <= nearest;
  };
  const auto visit = [&](const Corners& box, bool isHit) {
    const float distance = isHit ? test.distanceTo(box) : 0;
    if (isHit && (distance < best.distance || (distance == best.distance && box.id < best.box)))
      best = {box.id, distance};
    if (!__any_sync(kAllLanes, isHit)) return;
    nearest = best.distance;
    for (int step = 16; step > 0; step /= 2)
      nearest = fminf(nearest, __shfl_xor_sync(kAllLanes, nearest, step));
  };
  QueryWalk(in.searched).run(in.queries.world(query), meets, visit);
  std::uint32_t box = best.distance == nearest ? best.box : kNullIndex;
  for (int step = 16; step > 0; step /= 2) box = min(box, __shfl_xor_sync(kAllLanes, box, step));
  if (lane() == 0) in.hits[query] = {box, box != kNullIndex ? nearest : 0};
}

struct FindAny {
  RayQueries queries;
  const Searched* searched;
  std::uint8_t* hits;
};

static __global__ void __launch_bounds__(kThreads, 8) findAnyKernel(FindAny in) {
  const std::uint32_t query = queryOfWarp();
  if (query >= in.queries.size()) return;
  const RayTest test = in.queries.test(query);
  bool isHit = false;
  const auto meets = [&](const Corners& box) { return !isHit && test(box); };
  const auto visit = [&](const Corners&, bool hit) { isHit = __any_sync(kAllLanes, isHit || hit); };
  QueryWalk(in.searched).run(in.queries.world(query), meets, visit);
  if (lane() == 0) in.hits[query] = isHit ? 1 : 0;
}

/// Clears the counts. Runs on one thread.
struct BeginQueries {
  StepHeader* header;
  __device__ void operator()(std::uint32_t) const { *header = StepHeader{}; }
};

}  // namespace lbvh
