// SPDX-License-Identifier: Zlib
// What rigid_bodies prints and writes: a table for people, lines for programs, a .csv, a bar.
// Does not step anything.
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
  int objects = 0;  ///< asked for; the ground comes on top
  std::vector<StepTimes> steps;
  std::vector<StepFacts> facts;  ///< of the broad phase in each step
  std::vector<double> getAabb;   ///< milliseconds of updateAabbs without a broad phase, each step
  std::vector<int> pairCounts;   ///< after each step
  int pairs = 0;                 ///< in the pair cache after the last step
  std::uint64_t hash = 0;        ///< of all transforms after the last step
};

/// Medians of each part by itself.
StepTimes medianTimes(const std::vector<StepTimes>& steps);

/// A row for each run; with more than one, ratios to the first.
void printTable(const std::vector<Run>& runs);

/// The slow steps of each broad phase.
void printTails(const std::vector<Run>& runs);

/// `summary key=value ...` on one line. New keys go to its end.
void printSummary(const std::string& scene, const Run& run);

/// A row per step and broad phase.
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
