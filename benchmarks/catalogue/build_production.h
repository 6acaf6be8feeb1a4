// SPDX-License-Identifier: Zlib
// Wraps production's builder of binary trees (lbvh/hierarchy.h) as a variant.
#pragma once

#include "benchmarks/catalogue/bounds_by_flags.h"

namespace lbvh::variants {

template <class Space>
void buildProduction(BuildProblem<Space>& problem) {
  auto& scratch = problem.memory.scratch;
  scratch.reset(scratchBytes<std::uint32_t>(problem.n));
  std::uint32_t* arrivals = scratch.template lend<std::uint32_t>("arrivals", problem.n).data();
  problem.space.forEach(problem.n,
                        Fill{arrivals, kNullIndex});  // a step does this while it assigns codes
  problem.space.forEach(
      problem.n, BuildHierarchy<std::uint32_t>{problem.boxes, problem.ids, problem.codes, problem.n,
                                               arrivals, problem.nodes});
}

}  // namespace lbvh::variants
