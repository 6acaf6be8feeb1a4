// SPDX-License-Identifier: Zlib
// Stage 1 on a GPU in one kernel: the scene's bounds, and, by the block that ends last, the grid.
// What later kernels of the step count in is cleared on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "broadphase/core/grid.h"
#include "broadphase/core/morton.h"
#include "broadphase/cuda/runtime/kernels.cuh"
#include "broadphase/types.h"

namespace lbvh {

/// Element i measures box i, and clears element i of each array.
struct MeasureStep {
  static constexpr std::uint32_t kEach = 4;  ///< of a thread
  static constexpr std::uint32_t kTile = kEach * kThreads;

  MeasureScene scene;
  ChooseGrid chooseGrid;
  SceneBounds* partial;  ///< by block
  std::uint32_t* ended;  ///< how many blocks have; 0 before and after
  View<std::uint32_t> counts;
  View<unsigned long long> words;

  std::uint32_t elements() const {
    const std::size_t n = std::max({scene.boxes.size, counts.size, words.size, std::size_t{1}});
    return static_cast<std::uint32_t>(n);
  }
  static std::size_t blocks(std::size_t elements) { return (elements + kTile - 1) / kTile; }

  __device__ SceneBounds operator()(std::uint32_t i) const {
    if (i < counts.size) counts[i] = 0;
    if (i < words.size) words[i] = 0;
    return i < scene.boxes.size ? scene(i) : SceneBounds{};
  }
};

static __global__ void __launch_bounds__(kThreads) measureKernel(MeasureStep step) {
  using Reduce = cub::BlockReduce<SceneBounds, kThreads>;
  __shared__ typename Reduce::TempStorage reduce;
  __shared__ bool isLast;
  SceneBounds sum;
  for (std::uint32_t k = 0; k < MeasureStep::kEach; ++k)
    sum += step((blockIdx.x * MeasureStep::kEach + k) * kThreads + threadIdx.x);
  sum = Reduce(reduce).Reduce(sum, Plus{});
  if (threadIdx.x == 0) {
    step.partial[blockIdx.x] = sum;
    __threadfence();  // before others may read it
    isLast = atomicAdd(step.ended, 1u) + 1 == gridDim.x;
    __threadfence();  // after all have written theirs
  }
  __syncthreads();
  if (!isLast) return;
  sum = SceneBounds{};
  for (std::uint32_t i = threadIdx.x; i < gridDim.x; i += kThreads) sum += step.partial[i];
  sum = Reduce(reduce).Reduce(sum, Plus{});
  if (threadIdx.x != 0) return;
  *step.ended = 0;
  step.chooseGrid.header->scene = sum;
  step.chooseGrid(0);
}

}  // namespace lbvh
