// SPDX-License-Identifier: Zlib
// A graph of figures over steps, drawn with Dear ImGui: title, axes with units, a legend with the
// last values. Does not gather the figures (history.h).
#pragma once

#include <vector>

#include "drawing.h"
#include "history.h"

/// Draws into the current ImGui window at the cursor.
/// @param isTime milliseconds, or else counts
void drawGraph(const char* title, const History& history, int lastStep,
               const std::vector<Series>& series, bool isTime, float width, float height);

const std::vector<Series>& stepSeries();   ///< the parts of a step
const std::vector<Series>& stageSeries();  ///< the stages of our broad phase
const std::vector<Series>& pairSeries();
