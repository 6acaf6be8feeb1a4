// SPDX-License-Identifier: Zlib
// Output of rigid_bodies; see the header.
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/recorded_boxes.h"
#include "support/timing.h"

namespace {

template <class Part>
double medianOf(const std::vector<StepTimes>& steps, Part part) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepTimes& times : steps) values.push_back(part(times));
  return median(std::move(values));
}

double medianBroadphase(const Run& run) {
  return medianOf(run.steps, [](const StepTimes& times) { return times.broadphase(); });
}

/// Formats a slow step for people, as `step: milliseconds (ratio to the steps around it, reason)`.
std::string describe(const LongStep& step) {
  return fmt::format("{}: {:.4f} ({:.1f} x, {})", step.step, step.ms, timesAround(step),
                     step.reason);
}

/// Formats slow steps for programs, as `step/ms/median of the steps around it/reason,...`.
std::string fieldOf(const std::vector<LongStep>& steps) {
  std::vector<std::string> words;
  for (const LongStep& step : steps)
    words.push_back(
        fmt::format("{}/{:.6f}/{:.6f}/{}", step.step, step.ms, step.around, step.reason));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string ratio(double value, double base) {
  return base > 0 ? fmt::format("{:.2f}", value / base) : "-";
}

bool pairsDiffer(const std::vector<Run>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const Run& run) { return run.pairs != runs.front().pairs; });
}

constexpr const char* kWhyPairsDiffer =
    "The pairs differ because each broad phase has a world of its own. dbvt and axis-sweep also "
    "keep\npairs whose boxes do not overlap, and the solver's result depends on the order of "
    "pairs.";

}  // namespace

const Run& baseOf(const std::vector<Run>& runs) {
  const auto ours = std::find_if(runs.begin(), runs.end(),
                                 [](const Run& run) { return run.broadphase == "gpu-lbvh"; });
  return ours != runs.end() ? *ours : runs.front();
}

StepTimes medianTimes(const std::vector<StepTimes>& steps) {
  StepTimes result;
  for (double StepTimes::*part :
       {&StepTimes::step, &StepTimes::updateAabbs, &StepTimes::calculatePairs,
        &StepTimes::narrowPhase, &StepTimes::solver}) {
    result.*part = medianOf(steps, [part](const StepTimes& times) { return times.*part; });
  }
  return result;
}

void printTable(const std::vector<Run>& runs) {
  fmt::print("\n{:<12}{:>9}{:>13}{:>13}{:>13}{:>9}{:>10}", "median ms", "step", "updateAabbs",
             "find pairs", "narrow phase", "solver", "pairs");
  const bool several = runs.size() > 1;
  if (several) fmt::print("{:>13}{:>8}", "broad phase", "step");
  fmt::print("\n");
  const Run& base = baseOf(runs);
  const double baseStep = medianTimes(base.steps).step;
  const double baseBroadphase = medianBroadphase(base);
  for (const Run& run : runs) {
    const StepTimes times = medianTimes(run.steps);
    fmt::print("{:<12}{:>9.2f}{:>13.3f}{:>13.3f}{:>13.2f}{:>9.2f}{:>10}", run.broadphase,
               times.step, times.updateAabbs, times.calculatePairs, times.narrowPhase, times.solver,
               run.pairs);
    if (several) {
      fmt::print("{:>13}{:>8}", ratio(medianBroadphase(run), baseBroadphase),
                 ratio(times.step, baseStep));
    }
    fmt::print("\n");
  }
  if (several) {
    fmt::print(
        "The last two columns are the times divided by those of {}. Broad phase = updateAabbs "
        "+ find pairs.\n",
        base.broadphase);
    if (pairsDiffer(runs)) fmt::print("{}\n", kWhyPairsDiffer);
  }
  fmt::print("\n");
}

void printComparison(const std::vector<Run>& runs) {
  const auto find = [&](const char* name) {
    return std::find_if(runs.begin(), runs.end(),
                        [&](const Run& run) { return run.broadphase == name; });
  };
  const auto ours = find("gpu-lbvh"), dbvt = find("dbvt");
  if (ours == runs.end() || dbvt == runs.end()) return;
  const double mine = medianBroadphase(*ours), bullets = medianBroadphase(*dbvt);
  fmt::print(
      "{} objects: the broad phase of a step takes gpu-lbvh {:.2f} ms and btDbvtBroadphase {:.2f} "
      "ms, {} times as long; the whole step takes {:.1f} ms and {:.1f} ms.\n",
      ours->objects, mine, bullets, ratio(bullets, mine), medianTimes(ours->steps).step,
      medianTimes(dbvt->steps).step);
}

void printTails(const std::vector<Run>& runs) {
  fmt::print("{:<12}{:>9}{:>13}{:>13}{:>13}   {}\n", "broad phase", "median", "p95", "p99", "max",
             "longest steps: ms (ratio to the median of the 15 around, reason)");
  for (const Run& run : runs) {
    const Tails tails = tailsOf(run.facts);
    std::vector<std::string> longest;
    for (const LongStep& step : tails.longest) longest.push_back(describe(step));
    fmt::print("{:<12}{:>9.4f}{:>13.4f}{:>13.4f}{:>13.4f}   {}\n", run.broadphase, tails.median,
               tails.p95, tails.p99, tails.max, fmt::join(longest, "; "));
  }
  fmt::print("\n");
}

void printSummary(const std::string& scene, const Run& run) {
  const StepTimes times = medianTimes(run.steps);
  const Tails tails = tailsOf(run.facts);
  fmt::print(
      "summary scene={} broadphase={} backend={} threads={} objects={} steps={} pairs={} "
      "step_ms={:.6f} update_aabbs_ms={:.6f} calculate_pairs_ms={:.6f} narrow_phase_ms={:.6f} "
      "solver_ms={:.6f} hash={:016x} broadphase_ms={:.6f} broadphase_p95_ms={:.6f} "
      "broadphase_p99_ms={:.6f} broadphase_max_ms={:.6f} get_aabb_ms={:.6f} longest={}\n",
      scene, run.broadphase, run.space.word, run.space.threads, run.objects, run.steps.size(),
      run.pairs, times.step, times.updateAabbs, times.calculatePairs, times.narrowPhase,
      times.solver, run.hash, tails.median, tails.p95, tails.p99, tails.max, median(run.getAabb),
      fieldOf(tails.longest));
}

CsvFile::CsvFile(const std::string& path) : path_(path), file_(path, std::ios::trunc) {
  if (!file_) throw FileError(fmt::format("{}: {}", path_, std::strerror(errno)));
  file_ << "step,broadphase,step_ms,update_aabbs_ms,calculate_pairs_ms,narrow_phase_ms,solver_ms,"
           "pairs\n";
}

void CsvFile::write(int step, const Run& run) {
  const StepTimes& times = run.steps.back();
  file_ << fmt::format("{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{}\n", step, run.broadphase,
                       times.step, times.updateAabbs, times.calculatePairs, times.narrowPhase,
                       times.solver, run.pairs);
  // A stream reports a full disk only when it is flushed.
  if (!file_.flush()) throw FileError(fmt::format("{}: cannot be written", path_));
}
