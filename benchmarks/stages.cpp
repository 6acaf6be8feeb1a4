// SPDX-License-Identifier: Zlib
// stages: times all variants of sort, hierarchy and traversal that are in the catalogue. It
// replaces one stage at a time. For comparison it also prints the times of production (the
// library's own code) and the times in the documents that catalogue/README.md lists.
#include <fmt/core.h>

#include <fstream>

#include "scenes/scenes.h"
#include "stage_rows.h"
#include "support/broadphases.h"
#include "support/command_line.h"
#include "support/output_files.h"
#include "support/recorded_boxes.h"
#include "walk.h"

namespace {

struct Settings {
  std::string scene = "debris";
  std::uint32_t objects = 12486;
  std::string backend = "host";
  lbvh::Options options;
  int threads = 1;
  int rounds = 21;
  std::string csv;
};

/// The boxes of the debris scene after 62 steps. By then the scene has about as many pairs as in
/// the documents.
std::vector<lbvh::Aabb> debris(std::uint32_t objects) {
  World world(makeBroadphase("dbvt", {}));
  findScene("debris")->build(world, {static_cast<int>(objects), 1});
  for (int step = 0; step < 62; ++step) world.step();
  return world.boxes();
}

std::vector<lbvh::Aabb> boxesOf(const Settings& settings) {
  if (settings.scene == "debris") return debris(settings.objects);
  if (settings.scene == "uniform") return Walk(settings.objects, 1).boxes();
  BoxReader reader(settings.scene);
  warnIfCutOff(reader, settings.scene);
  std::vector<lbvh::Aabb> boxes;
  for (std::uint32_t frame = 0; frame < reader.frames(); ++frame) reader.read(boxes);
  return boxes;
}

StageTable measure(const Settings& settings, const std::vector<lbvh::Aabb>& boxes) {
  const lbvh::View<const lbvh::Aabb> view{boxes.data(), boxes.size()};
#if defined(GPULBVH_CUDA)
  if (settings.backend == "cuda") return stagesOnCuda(view, settings.rounds);
#endif
  return stagesOnHost(view, settings.threads, settings.rounds);
}

/// Milliseconds of the row with which the other rows of a stage are compared.
double productionMs(const Settings& settings, const StageTable& table, const std::string& stage) {
  const bool isBinary = settings.options.hierarchy == lbvh::Hierarchy::binary;
  const char* const name =
      isBinary && stage == "traversal" ? "skip links, half pairs" : "production";
  for (const StageRow& row : table.rows)
    if (row.stage == stage && row.name == name) return row.ms;
  return 0;
}

std::string orNothing(double value, const char* format) {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "";
}

void print(const Settings& settings, const StageTable& table) {
  fmt::print("scene {}, {} boxes, {} pairs; {}; medians of {} rounds\n", settings.scene,
             table.boxes, table.pairs, table.space, settings.rounds);
  if (settings.backend == "cuda") fmt::print("(on an interpreter the times mean nothing)\n");
  fmt::print("{:<10} {:<26} {:>10} {:>9} {:>9} {:>8} {:>8}  {}\n", "stage", "variant", "ms",
             "of prod.", "GTX 690", "nodes", "tests", "source");
  for (const StageRow& row : table.rows)
    fmt::print("{:<10} {:<26} {:>10.4f} {:>9.2f} {:>9} {:>8} {:>8}  {}\n", row.stage, row.name,
               row.ms, row.ms / productionMs(settings, table, row.stage),
               orNothing(row.gtx690Ms, "{:.2f}"), orNothing(row.nodes, "{:.1f}"),
               orNothing(row.tests, "{:.1f}"), row.source);
}

void writeCsv(const Settings& settings, const StageTable& table) {
  std::ofstream file(settings.csv, std::ios::app);
  if (file.tellp() == 0)
    file << "scene,boxes,pairs,space,stage,variant,ms,ratio,gtx690_ms,nodes_a_query,"
            "tests_a_query\n";
  for (const StageRow& row : table.rows)
    file << fmt::format("{},{},{},\"{}\",{},\"{}\",{:.5f},{:.3f},{},{},{}\n", settings.scene,
                        table.boxes, table.pairs, table.space, row.stage, row.name, row.ms,
                        row.ms / productionMs(settings, table, row.stage),
                        orNothing(row.gtx690Ms, "{:.2f}"), orNothing(row.nodes, "{:.2f}"),
                        orNothing(row.tests, "{:.2f}"));
  if (!file.flush()) throw FileError(settings.csv + ": cannot be written");
}

int run(const Settings& settings) {
  lbvh::Options options = settings.options;
  options.backend = settings.backend == "cuda" ? lbvh::Backend::cuda : lbvh::Backend::host;
  requireBackend(options);
  requireWritable({{"--csv", settings.csv}});
  const StageTable table = measure(settings, boxesOf(settings));
  print(settings, table);
  if (!settings.csv.empty()) writeCsv(settings, table);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Times the variants of each stage, and production.", "stages");
  line.add("--scene", settings.scene, "debris, uniform, or an .aabb file (its last frame)")
      .showDefault();
  line.add("--objects", settings.objects, "number of boxes of debris or uniform")
      .range(1, 1 << 28)
      .showDefault();
  line.add("--backend", settings.backend, "where the stages run")
      .oneOf({"host", "cuda"})
      .showDefault();
  line.addHierarchy(settings.options);
  line.add("--threads", settings.threads, "number of host threads").range(1, 1024).showDefault();
  line.add("--rounds", settings.rounds, "number of rounds, in each of which all variants run")
      .range(1, 100000)
      .showDefault();
  line.add("--csv", settings.csv, "append the rows to this file").notEmpty();
  return runProgram(line, argc, argv, [&settings] { return run(settings); });
}
