// SPDX-License-Identifier: Zlib
// broadphase: times PairFinder::update on the host with Google Benchmark. The scenes are random
// walks of a thousand to a million boxes, on one and two threads. ns_per_work is nanoseconds
// divided by n log2 n + pairs. Use replay to time recorded scenes and other broad phases.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "broadphase/pair_finder.h"
#include "broadphase/version.h"
#include "walk.h"

namespace {

void update(benchmark::State& state) {
  lbvh::Options options;
  options.backend = lbvh::Backend::host;
  options.threads = static_cast<int>(state.range(1));
  lbvh::PairFinder finder(options);
  Walk walk(static_cast<std::uint32_t>(state.range(0)), 1);
  const auto step = [&] {
    finder.update({walk.boxes().data(), walk.boxes().size()});
    walk.step();
  };
  for (int warmUp = 0; warmUp < 3; ++warmUp) step();
  double ms = 0;
  for (auto _ : state) {
    step();
    ms += finder.stats().totalMs;
    state.SetIterationTime(finder.stats().totalMs / 1000);
  }
  const auto n = static_cast<double>(state.range(0));
  const auto pairs = static_cast<double>(finder.stats().pairs);
  state.counters["pairs"] = pairs;
  state.counters["ns_per_work"] =
      ms * 1e6 / static_cast<double>(state.iterations()) / (n * std::log2(n) + pairs);
}

/// Handles --version and prints the beginning of --help, because Google Benchmark describes only
/// itself.
/// @return whether the program ends here
bool introduces(const std::string& argument) {
  if (argument == "--version") std::printf("broadphase (GpuLbvhBroadphase) %s\n", lbvh::version());
  if (argument == "--help")
    std::puts(
        "Times PairFinder::update on the host, from a thousand boxes to a million.\n"
        "Usage: broadphase [OPTIONS]\n\nThe options are Google Benchmark's:\n");
  return argument == "--version";
}

}  // namespace

// Does not use the macro BENCHMARK, because newer Clangs warn about it.
int main(int argc, char** argv) {
  if (argc > 1 && introduces(argv[1])) return 0;
  benchmark::RegisterBenchmark("update", update)
      ->ArgNames({"boxes", "threads"})
      ->ArgsProduct({{1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 20}, {1, 2}})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
