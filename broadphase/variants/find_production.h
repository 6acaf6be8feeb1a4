// The traversal of every step in this space, as a row beside the others.
#pragma once

#include "broadphase/variants/variant.h"

namespace lbvh::variants {

template <class Space>
void findProduction(FindProblem<Space>& problem) {
  using TreePairs = typename Space::TreePairs;
  problem.space.append(TreePairs::elements(problem.n), TreePairs{problem.nodes, problem.scene, {}},
                       problem.out);
}

}  // namespace lbvh::variants
