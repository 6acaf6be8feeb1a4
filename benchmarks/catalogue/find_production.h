// SPDX-License-Identifier: Zlib
// A variant that runs the library's own search. It also packs the blocks, and on the host it sorts
// the lists of neighbours (host/pair_lists.h). Other variants leave both to other stages.
#pragma once

#include <algorithm>

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
    const std::size_t n = problem.boxes.size();
    const std::uint32_t ordinary =
        problem.scene->ordinary;  // all but ordinary boxes are treated like NaN boxes
    memory.blocks->pack(problem.boxes, {}, {problem.ids, n}, ordinary, false);
    const SearchPart all{&memory.blocks->packed(), &memory.blocks->packed()};
    const SearchLimits limits{.neighbours = problem.out.limit};
    NeighbourLists lists{memory.neighbours.ensure(memory.neighbours.capacity()),
                         memory.lists.ensure(n).data()};
    const auto found =
        static_cast<std::size_t>(memory.search->find({&all, 1}, ListKind::half, lists, limits));
    if (found > lists.indices.size()) {
      lists.indices = memory.neighbours.ensure(found);
      memory.search->find({&all, 1}, ListKind::half, lists, limits);
    }
    *problem.out.count = found;
    if (found <= problem.out.pairs.size())
      memory.sort->writePairs(lists, n, {problem.out.pairs.data(), found});
  } else {
    findOnDevice(problem);  // defined in find_production.cuh
  }
}

}  // namespace lbvh::variants
