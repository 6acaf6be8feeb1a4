// SPDX-License-Identifier: Zlib
// Bitonic sort: log n (log n + 1) / 2 rounds of compare and exchange, whose order depends only on n
// ("Thinking Parallel"; Batcher 1968). All exchanges move the larger element to the higher index.
// So missing elements beyond the end act like infinite keys, which never move. For this reason n
// need not be a power of two.
#pragma once

#include <bit>

#include "benchmarks/catalogue/variant.h"

namespace lbvh::variants {

/// Thread i compares key i with its partner. In the first round for a block size, the partner is at
/// the mirrored position in the block. In the next round it is a quarter of a block away, and in
/// each further round half as far. Equal keys are ordered by their values, because the network
/// itself is not stable.
struct CompareAndExchange {
  View<std::uint32_t> keys, values;
  std::uint32_t flip;  ///< partner: i ^ flip
  std::uint32_t mask;

  GPULBVH_HD void operator()(std::uint32_t i) const {
    const std::uint32_t j = i ^ flip;
    if (j <= i || j >= keys.size()) return;
    const std::uint32_t a = keys[i] & mask, b = keys[j] & mask;
    if (a < b || (a == b && values[i] < values[j])) return;
    const std::uint32_t key = keys[i], value = values[i];
    keys[i] = keys[j];
    values[i] = values[j];
    keys[j] = key;
    values[j] = value;
  }
};

template <class Space>
void sortBitonically(SortProblem<Space>& problem) {
  const std::size_t n = problem.keys.size();
  const std::uint32_t mask = problem.bits < 32 ? (1u << problem.bits) - 1 : ~0u;
  for (std::uint32_t block = 2; block < 2 * n; block *= 2)
    for (std::uint32_t flip = block - 1; flip > 0; flip = flip == block - 1 ? block / 4 : flip / 2)
      problem.space.forEach(n, CompareAndExchange{problem.keys, problem.values, flip, mask});
}

}  // namespace lbvh::variants
