// SPDX-License-Identifier: Zlib
// Draws a graph of values over steps with Dear ImGui: a title, axes with units, and a legend with
// the latest values. history.h stores the values.
#pragma once

#include <vector>

#include "drawing.h"
#include "history.h"

/// Draws into the current ImGui window at the cursor.
/// @param isTime whether values are milliseconds; if not, they are counts
void drawGraph(const char* title, const History& history, int lastStep,
               const std::vector<Series>& series, bool isTime, float width, float height);

const std::vector<Series>& stepSeries();   ///< the parts of a step
const std::vector<Series>& stageSeries();  ///< the stages of our broad phase
const std::vector<Series>& pairSeries();
