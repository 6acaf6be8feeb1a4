// The search of every step in this space, as a row beside the others: on the host with packing its
// blocks and sorting its lists (host/find_neighbours.h), which the others leave to further stages.
#pragma once

#include <algorithm>
#include <utility>

#include "broadphase/variants/variant.h"

namespace lbvh::variants {

template <class Space>
void findProduction(FindProblem<Space>& problem) {
  if constexpr (Space::kKnowsCounts) {
    auto& kept = problem.scratch.search;
    if (kept == nullptr) {
      kept = std::make_unique<NeighbourSearch>(problem.space.tasks());
      problem.scratch.packing = std::make_unique<BlockBuilder>(problem.space.tasks());
    }
    NeighbourSearch& search = *kept;
    const std::size_t n = problem.boxes.size;
    SceneBounds scene = *problem.scene;
    scene.nan += std::exchange(scene.oversized, 0u);  // oversized boxes are not part of the problem
    problem.scratch.packing->pack(problem.boxes, {}, problem.ids, scene);
    const PackedBoxes& all = problem.scratch.packing->packed();
    Node* const memory = problem.scratch.nodes.ensure(n).data;
    View<std::uint32_t> room = problem.scratch.words[0].ensure(problem.scratch.words[0].capacity());
    *problem.out.count = search.find(all, all, memory, room, problem.out.limit);
    if (*problem.out.count > room.size) {
      room = problem.scratch.words[0].ensure(*problem.out.count);
      search.find(all, all, memory, room, problem.out.limit);
    }
    if (*problem.out.count <= problem.out.pairs.size) search.sort(n, problem.out.pairs.data);
  } else {
    problem.space.append(problem.n, FindTreePairs{problem.nodes, problem.scene, {}}, problem.out);
  }
}

}  // namespace lbvh::variants
