// SPDX-License-Identifier: Zlib
// The sort variant "production" runs the sort that the library uses: CUB on CUDA,
// host/parallel/radix_sort.h on the host.
#pragma once

#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

template <class Space>
void sortProduction(SortProblem<Space>& problem) {
  problem.space.sortByKey(problem.keys, problem.values, problem.spareKeys, problem.spareValues, 0,
                          problem.bits);
}

}  // namespace lbvh::variants
