// SPDX-License-Identifier: Zlib
// gpu_micro: runs microbenchmarks on a GPU, to check the assumptions of the interpreter's model
// (tests/ptxvm) about atomics, launches, graphs, and the bus. Writes CSV to stdout, with measured
// figures and the model's assumptions in separate columns. On an interpreter it uses small sizes,
// which show only that it works.
#include "gpu_micro.h"

#include <cstdio>
#include <exception>
#include <string>

#include "broadphase/cuda/step.h"
#include "broadphase/pair_finder.h"
#include "broadphase/version.h"

namespace {

void print(const micro::Rows& rows) {
  for (const micro::Row& row : rows) {
    std::printf("\"%s\",", row.what.c_str());
    if (row.size > 0) std::printf("%llu", static_cast<unsigned long long>(row.size));
    std::printf(",%s,%.4g,", row.unit.c_str(), row.measured);
    if (row.assumed > 0) std::printf("%.4g", row.assumed);
    std::printf("\n");
  }
  std::fflush(stdout);
}

void run() {
  const std::string device = lbvh::cudaDeviceName();
  const bool isInterpreter = device.find("interpreter") != std::string::npos;
  std::printf("# measured: medians on %s\n", device.c_str());
  if (isInterpreter)
    std::printf("# THIS IS AN INTERPRETER: small sizes, and the times mean nothing\n");
  std::printf(
      "# assumed_by_model: what the model in tests/ptxvm/prof_model.h assumes, never measured\n");
  std::printf("benchmark,size,unit,measured,assumed_by_model\n");
  for (const auto group : {micro::measureAtomics, micro::measureLaunches, micro::measureMemory}) {
    micro::Rows rows;
    group(isInterpreter, rows);
    print(rows);
  }
}

/// Handles --help, --version and wrong arguments. The program has no options.
int answer(const std::string& argument) {
  if (argument == "--version") {
    std::printf("gpu_micro (GpuLbvhBroadphase) %s\n", lbvh::version());
    return 0;
  }
  const bool isAsked = argument == "--help";
  std::fputs("Usage: gpu_micro [--help | --version]    writes a CSV to stdout\n",
             isAsked ? stdout : stderr);
  return isAsked ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return answer(argv[1]);
  if (const std::string why = lbvh::whyUnavailable(lbvh::Backend::cuda); !why.empty()) {
    std::fprintf(stderr, "gpu_micro: %s\n", why.c_str());
    return 1;
  }
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_micro: %s\n", error.what());
    return 1;
  }
  return std::ferror(stdout) != 0 ? 1 : 0;
}
