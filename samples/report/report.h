// SPDX-License-Identifier: Zlib
// The output of rigid_bodies: a table for people, lines for programs, and a CSV file. Does not run
// the scenes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "scenes/world.h"
#include "support/broadphases.h"
#include "support/tails.h"

/// One broad phase's run of a scene.
struct Run {
  std::string broadphase;
  Space space;
  int objects = 0;  ///< requested number of objects, without the ground
  std::vector<StepTimes> steps;
  std::vector<StepFacts> facts;  ///< facts about the broad phase in each step
  std::vector<double> getAabb;  ///< milliseconds of updateAabbs without a broad phase, in each step
  std::vector<int> pairCounts;  ///< number of pairs after each step
  int pairs = 0;                ///< number of pairs in the cache after the last step
  std::uint64_t hash = 0;       ///< hash of all transforms after the last step
};

/// The run with which the others are compared: the run of gpu-lbvh, or the first if there is none.
/// @param runs at least one
const Run& baseOf(const std::vector<Run>& runs);

/// The medians of the parts' times, for each part separately.
StepTimes medianTimes(const std::vector<StepTimes>& steps);

/// If gpu-lbvh and dbvt both ran, compares them in one sentence.
void printComparison(const std::vector<Run>& runs);

/// Prints a row for each run. If there are several, it also prints ratios to baseOf(runs).
void printTable(const std::vector<Run>& runs);

void printTails(const std::vector<Run>& runs);

/// Prints one line `summary key=value ...`. New keys must be added at the end.
void printSummary(const std::string& scene, const Run& run);

/// A file with one row per step and broad phase.
class CsvFile {
 public:
  /// @throws FileError
  explicit CsvFile(const std::string& path);

  /// Writes the last step of `run`.
  /// @throws FileError
  void write(int step, const Run& run);

 private:
  std::string path_;
  std::ofstream file_;
};
