// SPDX-License-Identifier: Zlib
// Times all variants of every stage on the host or on a GPU, one after another. On the host it also
// counts the work of traversals. stages.cpp prints the rows, and tests/support/variants_checks.h
// checks the variants.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "broadphase/types.h"

struct StageRow {
  std::string stage, name, source;
  double gtx690Ms = 0;  ///< from the documents that catalogue/README.md lists; 0: none
  double ms = 0;        ///< median of the rounds
  double nodes = 0;     ///< visited nodes or pairs of nodes per query; 0: not counted
  double tests = 0;     ///< tests of a box against a box per query; 0: not counted
};

struct StageTable {
  std::string space;
  std::size_t boxes = 0;
  std::uint64_t pairs = 0;
  std::vector<StageRow> rows;
};

/// Runs the variants on the host's cores, and also counts the work of traversals.
StageTable stagesOnHost(lbvh::View<const lbvh::Aabb> boxes, int threads, int rounds);

/// Runs the variants on the GPU. Only builds with CUDA have this function.
/// @throws lbvh::SpaceError
StageTable stagesOnCuda(lbvh::View<const lbvh::Aabb> boxes, int rounds);

#if defined(GPULBVH_STAGE_ROWS_BODY)

#include "benchmarks/catalogue/catalogue.h"
#include "benchmarks/catalogue/workbench.h"

namespace stage_rows {

using namespace lbvh;
using namespace lbvh::variants;

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <class Space, class Row, class Problem>
double timed(Workbench<Space>& bench, const Row& row, Problem problem) {
  double ms = 0;
  {
    const auto timer = bench.space().timed(row.name, ms);
    row.run(problem);
  }
  bench.space().wait();
  return ms;
}

template <class Space, class Row, class MakeProblem>
void timeAll(Workbench<Space>& bench, const char* stage, const std::vector<Row>& rows, int rounds,
             const MakeProblem& makeProblem, std::vector<StageRow>& out) {
  std::vector<std::vector<double>> times(rows.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].run != nullptr) times[i].push_back(timed(bench, rows[i], makeProblem()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].run == nullptr) continue;
    StageRow row;
    row.stage = stage;
    row.name = rows[i].name;
    row.source = rows[i].source;
    row.gtx690Ms = rows[i].gtx690Ms;
    row.ms = median(times[i]);
    out.push_back(row);
  }
}

/// Times traversals first, because they cannot use the tree that Apetrei's builder leaves.
template <class Space>
StageTable measure(Workbench<Space>& bench, View<const Aabb> boxes, int rounds) {
  bench.prepare(boxes);
  StageTable table;
  table.boxes = boxes.size();
  auto production = bench.findProblem(0);
  finders<Space>().front().run(production);
  table.pairs = bench.found();
  const auto room = static_cast<std::size_t>(table.pairs);
  timeAll(
      bench, "traversal", finders<Space>(), rounds, [&] { return bench.findProblem(room); },
      table.rows);
  timeAll(
      bench, "hierarchy", builders<Space>(), rounds, [&] { return bench.buildProblem(); },
      table.rows);
  timeAll(
      bench, "sort", sorts<Space>(), rounds, [&] { return bench.sortProblem(); }, table.rows);
  return table;
}

}  // namespace stage_rows

#endif
