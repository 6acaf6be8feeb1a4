// SPDX-License-Identifier: Zlib
// Charts as SVG text: lines over two axes, and stacked bars of shares, with titles, units and
// legends. Colours are the CSS classes c0, c1, ... of the page around it. Knows nothing of what it
// draws.
#pragma once

#include <string>
#include <vector>

struct Line {
  std::string name;
  int colour = 0;
  std::vector<double> x, y;
};

struct Axis {
  std::string title;            ///< with the unit
  bool log = false;             ///< leaves out what is not above zero
  std::vector<double> marks{};  ///< empty: chosen
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
    std::vector<double> shares;  ///< of 1, one for each part
    std::string note;            ///< at the bar's end
  };
  std::string title;
  std::string axisTitle;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};
std::string toSvg(const StackedBars& chart);

/// For text and for attributes in double quotes.
std::string escaped(const std::string& text);

/// Three digits, or all before the point: 0.031, 3.77, 28.3, 12,486.
std::string shortNumber(double value);
