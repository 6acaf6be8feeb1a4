// SPDX-License-Identifier: Zlib
// The table of all variants, which tests compare and benchmarks time. To add a variant, write its
// header, and add its row here. The milliseconds come from the documents that this folder's
// README.md lists. They were measured with 12,486 pieces of debris on a GeForce GTX 690.
#pragma once

#include <vector>

#include "benchmarks/catalogue/build_apetrei.h"
#include "benchmarks/catalogue/build_karras.h"
#include "benchmarks/catalogue/build_level_by_level.h"
#include "benchmarks/catalogue/build_production.h"
#include "benchmarks/catalogue/build_recursive.h"
#include "benchmarks/catalogue/find_production.h"
#include "benchmarks/catalogue/find_simultaneous.h"
#include "benchmarks/catalogue/find_skip_links.h"
#include "benchmarks/catalogue/find_stack.h"
#include "benchmarks/catalogue/find_uniform_grid.h"
#include "benchmarks/catalogue/sort_bitonic.h"
#include "benchmarks/catalogue/sort_production.h"
#include "benchmarks/catalogue/sort_split.h"

namespace lbvh::variants {

/// Returns `run` on the host, and null on a GPU.
template <class Space, class Problem>
constexpr auto hostOnly(void (*run)(Problem&)) {
  return Space::kKnowsCounts ? run : nullptr;
}

template <class Space>
std::vector<Variant<BuildProblem<Space>>> builders() {
  const char* partThree = "Thinking Parallel, Part III";
  return {
      {"production", "Prokopenko, Lebrun-Grandie: Algorithm 4", 0, buildProduction<Space>},
      {"recursive", partThree, 0, hostOnly<Space>(buildRecursively<Space>)},
      {"level by level", "Garanzha et al. 2011; Part III", 1.04, buildLevelByLevel<Space>},
      {"karras", "Karras 2012; Part III", 0.08, buildKarras<Space>},
      {"apetrei", "Apetrei 2014: Algorithm 3", 0, buildApetrei<Space>},
  };
}

/// Makes the row of a traversal. For timing, the traversal gets a counter that does nothing. To
/// count its work, it gets a counter that counts.
template <class Space, class Append>
FindVariant<Space> finder(const char* name, const char* source, double gtx690Ms, Append) {
  FindVariant<Space> row{
      {name, source, gtx690Ms, [](FindProblem<Space>& problem) { Append{}(problem, NoCount{}); }}};
  if constexpr (Space::kKnowsCounts)
    row.count = [](const FindProblem<Space>& problem, Work& work) {
      Append{}(problem, Count{&work});
    };
  return row;
}

template <class Space>
std::vector<FindVariant<Space>> finders() {
  const char* partTwo = "Thinking Parallel, Part II";
  std::vector<FindVariant<Space>> rows = {
      {{"production", "this library", 0, findProduction<Space>}},
      finder<Space>("recursive", partTwo, 3.8,
                    [](const auto& p, auto count) { appendRecursively(p, count); }),
      finder<Space>("stack, object order", partTwo, 0.91,
                    [](const auto& p, auto count) { appendByStack<Order::objects>(p, count); }),
      finder<Space>("stack, leaf order", partTwo, 0.43,
                    [](const auto& p, auto count) { appendByStack<Order::leaves>(p, count); }),
      finder<Space>("stack, half pairs", partTwo, 0.25,
                    [](const auto& p, auto count) { appendByStack<Order::leavesHalf>(p, count); }),
      finder<Space>("skip links, from the root", "Prokopenko, Lebrun-Grandie: Algorithm 1", 0,
                    [](const auto& p, auto count) { appendBySkipLinks<true>(p, count); }),
      finder<Space>("skip links, half pairs", "Algorithm 1, starting at the leaf's own link", 0,
                    [](const auto& p, auto count) { appendBySkipLinks<false>(p, count); }),
      finder<Space>("simultaneous, from the root", partTwo, 0,
                    [](const auto& p, auto count) { appendFromRoot(p, count); }),
      finder<Space>("simultaneous, from a cut", partTwo, 0,
                    [](const auto& p, auto count) { appendFromCut(p, count); }),
      finder<Space>("uniform grid", "Thinking Parallel, Part I", 0,
                    [](const auto& p, auto count) { appendInCells(p, count); }),
  };
  return rows;
}

template <class Space>
std::vector<Variant<SortProblem<Space>>> sorts() {
  return {
      {"production", "this library", 0.18, sortProduction<Space>},
      {"bitonic", "Batcher 1968", 0, sortBitonically<Space>},
      {"split by bit", "Harris, Sengupta, Owens 2007", 0, sortBySplitting<Space>},
  };
}

}  // namespace lbvh::variants
