// SPDX-License-Identifier: Zlib
// Writes charts as SVG text: line charts, and stacked bars that show shares. All charts have
// titles, units and legends. The page defines the colours as CSS classes c0, c1, ...
#pragma once

#include <string>
#include <vector>

struct Line {
  std::string name;
  int colour = 0;
  std::vector<double> x, y;
};

struct Axis {
  std::string title;  ///< title with the unit
  bool log = false;   ///< whether it is logarithmic; then only values above zero are drawn
  std::vector<double> marks{};  ///< empty: chosen automatically
};

struct LineChart {
  std::string title;
  Axis x, y;
  std::vector<Line> lines;
};
std::string toSvg(const LineChart& chart);

struct StackedBars {
  struct Bar {
    std::string name;
    std::vector<double> shares;  ///< one for each part; their sum is 1
    std::string note;            ///< text at the bar's end
  };
  std::string title;
  std::string axisTitle;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};
std::string toSvg(const StackedBars& chart);

/// Escapes text for HTML, also for attributes in double quotes.
std::string escaped(const std::string& text);

/// Formats a number with few digits: 0.031, 3.77, 28.3, 12,486.
std::string shortNumber(double value);
