// SPDX-License-Identifier: Zlib
// The search of every step in this space, as a row beside the others: on the host with packing its
// blocks and sorting its lists (host/find_neighbours.h), which the others leave to further stages.
#pragma once

#include <algorithm>
#include <utility>

#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

template <class Space>
void findProduction(FindProblem<Space>& problem) {
  if constexpr (Space::kKnowsCounts) {
    VariantMemory<Space>& memory = problem.memory;
    if (memory.search == nullptr) {
      memory.search = std::make_unique<NeighbourSearch>(problem.space.tasks(), simdKernels());
      memory.sort = std::make_unique<NeighbourSort>(problem.space.tasks(), simdKernels());
      memory.blocks = std::make_unique<BlockBuilder>(problem.space.tasks(), simdKernels());
    }
    const std::size_t n = problem.boxes.size;
    SceneBounds scene = *problem.scene;
    scene.nan += std::exchange(scene.oversized, 0u);  // oversized boxes are not part of the problem
    memory.blocks->pack(problem.boxes, {}, problem.ids, scene, false);
    const PackedBoxes& all = memory.blocks->packed();
    NeighbourLists lists{memory.neighbours.ensure(memory.neighbours.capacity()),
                         memory.lists.ensure(n).data};
    const auto found = static_cast<std::size_t>(
        memory.search->find(all, all, ListKind::half, lists, problem.out.limit));
    if (found > lists.indices.size) {
      lists.indices = memory.neighbours.ensure(found);
      memory.search->find(all, all, ListKind::half, lists, problem.out.limit);
    }
    *problem.out.count = found;
    if (found <= problem.out.pairs.size)
      memory.sort->writePairs(lists, n, {problem.out.pairs.data, found});
  } else {
    findOnDevice(problem);  // of find_production.cuh
  }
}

}  // namespace lbvh::variants
