// SPDX-License-Identifier: Zlib
#define GPULBVH_STAGE_ROWS_BODY
#include "stage_rows.h"

namespace {

using namespace stage_rows;

/// Runs on one thread, because counters are not thread-safe.
void countWork(View<const Aabb> boxes, StageTable& table) {
  Workbench<CatalogueHost> bench(1);
  bench.prepare(boxes);
  for (const auto& finder : finders<CatalogueHost>()) {
    if (finder.count == nullptr) continue;
    Work work;
    finder.count(bench.findProblem(0), work);
    for (StageRow& row : table.rows) {
      if (row.stage != "traversal" || row.name != finder.name) continue;
      row.nodes = static_cast<double>(work.nodes) / static_cast<double>(boxes.size());
      row.tests = static_cast<double>(work.tests) / static_cast<double>(boxes.size());
    }
  }
}

}  // namespace

StageTable stagesOnHost(View<const Aabb> boxes, int threads, int rounds) {
  Workbench<CatalogueHost> bench(threads);
  StageTable table = measure(bench, boxes, rounds);
  table.space = "host, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  countWork(boxes, table);
  return table;
}
