// SPDX-License-Identifier: Zlib
// The builder of the host's tree (lbvh/hierarchy.h), as a row beside the others.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

template <class Space>
void buildProduction(BuildProblem<Space>& problem) {
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<std::uint32_t>(problem.n));
  std::uint32_t* arrivals = scratch.template lend<std::uint32_t>("arrivals", problem.n).data;
  problem.space.forEach(problem.n, Fill{arrivals, kNullIndex});  // a step does it with the codes
  problem.space.forEach(problem.n,
                        BuildHierarchy<std::uint32_t>{problem.boxes, problem.ids, problem.codes,
                                                      problem.scene, arrivals, problem.nodes});
}

}  // namespace lbvh::variants
