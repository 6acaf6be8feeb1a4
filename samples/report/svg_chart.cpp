// SPDX-License-Identifier: Zlib
// Writes charts as SVG text; see the header.
#include "report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace {

// Lengths are in units of the view box, which the page scales.
constexpr double kWidth = 600;
constexpr double kHeight = 370;
constexpr double kLeft = 80;
constexpr double kRight = 28;
constexpr double kTop = 66;  // title and legend
constexpr double kBottom = 54;
constexpr double kBar = 34;  // a stacked bar and its gap
constexpr std::size_t kMaxHints = 150;

template <class... Arguments>
void put(std::string& svg, fmt::format_string<Arguments...> form, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(svg), form, std::forward<Arguments>(arguments)...);
}

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string tickLabel(double value) {
  return std::abs(value) >= 1000 ? grouped(value) : fmt::format("{:.6g}", value);
}

/// The range and the marks of an axis, and the position of a value on it, from 0 to 1.
class Scale {
 public:
  Scale(const Axis& axis, const std::vector<Line>& lines, std::vector<double> Line::*values)
      : log_(axis.log) {
    const bool isX = values == &Line::x;
    double low = std::numeric_limits<double>::max();
    double high = std::numeric_limits<double>::lowest();
    for (const Line& line : lines)
      for (const double value : line.*values) {
        if (!shows(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    if (low > high) low = high = 1;
    if (!isX && !log_) low = std::min(low, 0.0);
    log_ ? markDecades(low, high) : markEvenly(low, high);
    if (!axis.marks.empty()) marks_ = axis.marks;
    if (isX && high > low) cutTo(low, high);
  }

  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double at(double value) const {
    return (position(value) - position(low_)) / (position(high_) - position(low_));
  }
  const std::vector<double>& marks() const { return marks_; }

 private:
  double position(double value) const { return log_ ? std::log10(value) : value; }

  /// Makes about five marks, with steps of 1, 2 or 5 times a power of ten.
  void markEvenly(double low, double high) {
    if (high <= low) high = low + 1;
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0})
      if (rough <= factor * power) step = factor * power;
    low_ = std::floor(low / step) * step;
    high_ = std::ceil(high / step) * step;
    for (int i = 0; low_ + i * step <= high_ + step / 2; ++i) marks_.push_back(low_ + i * step);
  }

  /// Makes marks at 1, 2 and 5 times powers of ten, or only at powers of ten if there would be too
  /// many.
  void markDecades(double low, double high) {
    const bool many = high / low > 2000;
    std::vector<double> all;
    for (int power = static_cast<int>(std::floor(std::log10(low))) - 1;
         power <= std::floor(std::log10(high)) + 1; ++power)
      for (const double factor : {1.0, 2.0, 5.0})
        if (factor == 1 || !many) all.push_back(factor * std::pow(10, power));
    const auto first = std::prev(std::upper_bound(all.begin(), all.end(), low * 1.0001));
    auto last = std::lower_bound(first, all.end(), high);
    if (last == first) ++last;
    marks_.assign(first, last + 1);
    low_ = marks_.front();
    high_ = marks_.back();
  }

  /// Ends the axis at the lowest and highest values instead of at the next marks.
  void cutTo(double low, double high) {
    low_ = low;
    high_ = high;
    marks_.erase(std::remove_if(marks_.begin(), marks_.end(),
                                [&](double mark) { return mark < low || mark > high; }),
                 marks_.end());
  }

  bool log_;
  double low_ = 0, high_ = 1;
  std::vector<double> marks_;
};

void putText(std::string& svg, double x, double y, const char* type, const char* anchor,
             const std::string& text) {
  put(svg, "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", type, x,
      y, anchor, escaped(text));
}

void begin(std::string& svg, double height, const std::string& title) {
  put(svg, "<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
      kWidth, height, escaped(title));
  putText(svg, 0, 18, "title", "start", title);
}

struct Entry {
  std::string name;
  int colour;
};

/// Writes the legend as one row under the title.
void putLegend(std::string& svg, const std::vector<Entry>& entries, const char* sample) {
  double x = 0;
  for (const Entry& entry : entries) {
    put(svg, "<g class=\"legend\"><path class=\"{}{}\" d=\"M{:.1f} 42h22\"/>", sample, entry.colour,
        x);
    putText(svg, x + 28, 46, "label", "start", entry.name);
    svg += "</g>\n";
    x += 46 + 7.2 * double(entry.name.size());
  }
}

struct Frame {
  Scale x, y;
  double left(double value) const { return kLeft + x.at(value) * (kWidth - kLeft - kRight); }
  double top(double value) const {
    return kHeight - kBottom - y.at(value) * (kHeight - kTop - kBottom);
  }
};

void putAxes(std::string& svg, const LineChart& chart, const Frame& frame) {
  for (const double mark : frame.y.marks()) {
    const double y = frame.top(mark);
    put(svg, "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y, kWidth - kRight);
    putText(svg, kLeft - 8, y + 4, "tick", "end", tickLabel(mark));
  }
  for (const double mark : frame.x.marks()) {
    const double x = frame.left(mark);
    put(svg, "<path class=\"axis\" d=\"M{:.1f} {:.1f}v5\"/>\n", x, kHeight - kBottom);
    putText(svg, x, kHeight - kBottom + 19, "tick", "middle", tickLabel(mark));
  }
  put(svg, "<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", kLeft, kTop,
      kHeight - kBottom, kWidth - kRight);
  putText(svg, (kLeft + kWidth - kRight) / 2, kHeight - 10, "x-title", "middle", chart.x.title);
  const double middle = (kTop + kHeight - kBottom) / 2;
  put(svg,
      "<text class=\"y-title\" transform=\"translate(14 {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      middle, escaped(chart.y.title));
}

/// Draws the line, and points on it that show their values when the mouse is over them. The points
/// are invisible unless `dots` is set.
void putLine(std::string& svg, const LineChart& chart, const Line& line, const Frame& frame,
             bool dots) {
  std::string path, hints;
  const std::size_t stride = line.x.size() / kMaxHints + 1;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (!frame.x.shows(line.x[i]) || !frame.y.shows(line.y[i])) continue;
    const double x = frame.left(line.x[i]);
    const double y = frame.top(line.y[i]);
    put(path, "{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    if (i % stride != 0 && !dots) continue;
    put(hints,
        "<circle class=\"{} c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">"
        "<title>{}\n{}: {}\n{}: {}</title></circle>\n",
        dots ? "dot" : "hint", line.colour, x, y, dots ? "4" : "6", escaped(line.name),
        escaped(chart.x.title), tickLabel(line.x[i]), escaped(chart.y.title),
        shortNumber(line.y[i]));
  }
  put(svg, "<path class=\"line c{}\" d=\"{}\"/>\n{}", line.colour, path, hints);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string shortNumber(double value) {
  const double size = std::abs(value);
  if (size >= 100 || value == std::floor(value)) return grouped(value);
  return fmt::format("{:.{}f}", value, size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

std::string toSvg(const LineChart& chart) {
  const Frame frame{{chart.x, chart.lines, &Line::x}, {chart.y, chart.lines, &Line::y}};
  std::string svg;
  begin(svg, kHeight, chart.title);
  std::vector<Entry> entries;
  for (const Line& line : chart.lines) entries.push_back({line.name, line.colour});
  putLegend(svg, entries, "line c");
  putAxes(svg, chart, frame);
  const bool dots = !chart.lines.empty() && chart.lines.front().x.size() <= 20;
  for (const Line& line : chart.lines) putLine(svg, chart, line, frame, dots);
  return svg + "</svg>\n";
}

std::string toSvg(const StackedBars& chart) {
  constexpr double kNote = 112;
  constexpr double kName = 84;
  const double width = kWidth - kName - kNote;
  const double bottom = kTop + kBar * double(chart.bars.size());
  std::string svg;
  begin(svg, bottom + kBottom, chart.title);
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < chart.parts.size(); ++i)
    entries.push_back({chart.parts[i], static_cast<int>(i)});
  putLegend(svg, entries, "part p");

  for (std::size_t row = 0; row < chart.bars.size(); ++row) {
    const StackedBars::Bar& bar = chart.bars[row];
    const double y = kTop + kBar * double(row);
    putText(svg, kName - 8, y + 17, "label", "end", bar.name);
    putText(svg, kName + width + 8, y + 17, "label", "start", bar.note);
    double x = kName;
    for (std::size_t i = 0; i < bar.shares.size(); ++i) {
      const double length = bar.shares[i] * width;
      put(svg,
          "<rect class=\"fill p{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"24\">"
          "<title>{}, {}: {:.1f} %</title></rect>\n",
          i, x, y, std::max(length, 0.0), escaped(bar.name), escaped(chart.parts[i]),
          100 * bar.shares[i]);
      if (length > 34)
        putText(svg, x + length / 2, y + 17, i == 0 ? "on-dark" : "on-light", "middle",
                fmt::format("{:.0f} %", 100 * bar.shares[i]));
      x += length;
    }
  }
  for (int mark = 0; mark <= 100; mark += 20) {
    const double x = kName + width * mark / 100;
    put(svg, "<path class=\"axis\" d=\"M{:.1f} {:.1f}v5\"/>\n", x, bottom);
    putText(svg, x, bottom + 19, "tick", "middle", fmt::format("{}", mark));
  }
  put(svg, "<path class=\"axis\" d=\"M{:.1f} {:.1f}h{:.1f}\"/>\n", kName, bottom, width);
  putText(svg, kName + width / 2, bottom + 42, "x-title", "middle", chart.axisTitle);
  return svg + "</svg>\n";
}
