// SPDX-License-Identifier: Zlib
// Writes a comparison of broad phases as one self-contained HTML page with tables and charts.
// Does not run anything.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "scenes/scenes.h"

/// A broad phase that was not run, and why.
struct LeftOut {
  std::string broadphase;
  int objects = 0;
  std::string reason;
};

struct Comparison {
  struct AtSize {
    int objects = 0;
    std::vector<Run> runs;
  };
  const Scene* scene = nullptr;
  std::string command;  ///< the command line, quoted for a shell
  int steps = 0;
  std::uint32_t seed = 1;
  std::vector<AtSize> sizes;  ///< at least one size; the last one is shown step by step
  std::vector<LeftOut> leftOut;
};

/// @throws FileError
void writeHtmlReport(const std::string& path, const Comparison& comparison);
