// SPDX-License-Identifier: Zlib
// Packs the blocks and runs production's search on a GPU. Used by find_production.h.
#pragma once

#include "benchmarks/catalogue/cuda_space.cuh"
#include "benchmarks/catalogue/variant.h"
#include "broadphase/cuda/kernels/block_search.cuh"

namespace lbvh::variants {

struct BeginHeader {
  StepHeader* header;
  __device__ void operator()(std::uint32_t) const { *header = StepHeader{}; }
};

struct EndSearch {
  const StepHeader* header;
  std::uint64_t* count;
  __device__ void operator()(std::uint32_t) const { *count = header->pairs; }
};

inline void findOnDevice(FindProblem<CatalogueCuda>& problem) {
  CatalogueCuda& space = problem.space;
  auto& scratch = problem.memory.scratch;
  const std::size_t n = problem.n, all = problem.boxes.size(), room = problem.out.pairs.size();
  const LeafBlockLayout layout(n);
  scratch.reset(scratchBytes<StepHeader>(1) + scratchBytes<float4>(layout.corners()) +
                scratchBytes<std::uint32_t>(all) + scratchBytes<std::uint32_t>(room));
  StepHeader* header = scratch.lend<StepHeader>("header", 1).data();
  float4* corners = scratch.lend<float4>("corners", layout.corners()).data();
  const View<std::uint32_t> counts = scratch.lend<std::uint32_t>("counts", all);
  std::uint32_t* places = scratch.lend<std::uint32_t>("places", room).data();

  space.forEach(1, BeginHeader{header});
  space.fill(counts, 0);
  const LeafBlocks leaves = layout.in(corners, n);
  space.fill(leaves.closed, 0);
  // `ids` lists all boxes. Only the first n of these are in the tree and belong to the problem.
  const View<const Aabb> boxes{problem.boxes.data(), n};
  space.launch<packBlocksKernel>(leaves.groupCount, PackBlocks::kGroup,
                                 PackBlocks{boxes, problem.ids, leaves, header});
  FindBlockPairs search{leaves, {}, header, FindBlockPairs::partsFor(n)};
  search.out.pairs = problem.out.pairs;
  search.out.limit = problem.out.limit;
  search.out.count = reinterpret_cast<unsigned long long*>(&header->pairs);
  search.out.counts = counts.data();
  search.out.places = places;
  space.launch<findBlockPairsKernel<false>>(search.blocks<false>(),
                                            FindBlockPairs::kBlockThreads<false>, search);
  space.forEach(1, EndSearch{header, problem.out.count});
}

}  // namespace lbvh::variants
