// SPDX-License-Identifier: Zlib
#include "graph.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <iterator>

namespace {

constexpr ImU32 kText = IM_COL32(214, 218, 226, 255), kAxis = IM_COL32(255, 255, 255, 60),
                kFaint = IM_COL32(255, 255, 255, 24), kSwap = IM_COL32(255, 255, 255, 130);
constexpr float kLeft = 46;  // width of the vertical axis's labels in pixels

ImU32 packed(Colour c) { return IM_COL32(c.red, c.green, c.blue, c.alpha); }

std::string labelOf(double value, bool isTime) {
  if (isTime) return value >= 10 ? fmt::format("{:.0f}", value) : fmt::format("{:.2g}", value);
  if (value >= 10000) return fmt::format("{:.0f}k", value / 1000);
  return fmt::format("{:.0f}", value);
}

/// Draws names and latest values in rows that fit the width. Returns the height of all rows.
float drawLegend(ImDrawList& list, ImVec2 at, float width, const History& history,
                 const std::vector<Series>& series, bool isTime) {
  const float line = ImGui::GetTextLineHeight();
  ImVec2 pen = at;
  for (const Series& one : series) {
    std::string text = one.name;
    if (const StepRecord* last = history.last()) {
      const double value = one.valueOf(*last);
      text += isTime ? fmt::format(" {:.{}f}", value, value < 10 ? 2 : 1)
                     : fmt::format(" {:.0f}", value);
    }
    const float needs = ImGui::CalcTextSize(text.c_str()).x + 26;
    if (pen.x > at.x && pen.x + needs > at.x + width) pen = {at.x, pen.y + line};
    list.AddRectFilled({pen.x, pen.y + line * 0.3f}, {pen.x + 10, pen.y + line * 0.3f + 8},
                       packed(one.colour), 2);
    list.AddText({pen.x + 14, pen.y}, kText, text.c_str());
    pen.x += needs;
  }
  return pen.y + line - at.y;
}

}  // namespace

void drawGraph(const char* title, const History& history, int lastStep,
               const std::vector<Series>& series, bool isTime, float width, float height) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  list.AddText(corner, kText, title);
  const float legend =
      drawLegend(list, {corner.x, corner.y + line + 2}, width, history, series, isTime);
  const ImVec2 low(corner.x + kLeft, corner.y + line + legend + 12),
      high(corner.x + width - 6, corner.y + height - line - 4);

  const double top = niceCeiling(reachOf(history, series, isTime));
  const auto yOf = [&](double value) { return high.y - float(value / top) * (high.y - low.y); };
  const auto xOf = [&](std::size_t i) {
    return low.x +
           (high.x - low.x) * float(i) / float(std::max<std::size_t>(history.size(), 60) - 1);
  };
  for (const double share : {0.0, 0.5, 1.0}) {
    const float y = yOf(share * top);
    list.AddLine({low.x, y}, {high.x, y}, share == 0 ? kAxis : kFaint);
    const std::string label = labelOf(share * top, isTime);
    const float wide = ImGui::CalcTextSize(label.c_str()).x;
    list.AddText({low.x - wide - 5, y - line / 2}, kText, label.c_str());
  }
  list.AddLine({low.x, low.y}, {low.x, high.y}, kAxis);

  const int first = lastStep - int(history.size()) + 1;
  list.AddText({low.x, high.y + 3}, kText, fmt::format("step {}", std::max(first, 0)).c_str());
  if (history.size() > 1) {
    const std::string last = fmt::format("{}", lastStep);
    const float wide = ImGui::CalcTextSize(last.c_str()).x;
    const float x = std::max(xOf(history.size() - 1) - wide, low.x + 70);
    list.AddText({x, high.y + 3}, kText, last.c_str());
  }
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (history[i].swappedTo.empty()) continue;
    list.AddLine({xOf(i), low.y}, {xOf(i), high.y}, kSwap);
    list.AddText({xOf(i) + 3, low.y - 2}, kSwap, history[i].swappedTo.c_str());
  }
  std::vector<ImVec2> points(history.size());
  list.PushClipRect({low.x, low.y - 1}, {high.x, high.y + 1}, true);
  for (const Series& one : series) {
    for (std::size_t i = 0; i < history.size(); ++i)
      points[i] = {xOf(i), yOf(one.valueOf(history[i]))};
    list.AddPolyline(points.data(), int(points.size()), packed(one.colour), 0, 1.8f);
  }
  list.PopClipRect();
  ImGui::Dummy({width, height});
}

const std::vector<Series>& stepSeries() {
  using R = const StepRecord&;
  static const std::vector<Series> series = {
      {"solver", {130, 150, 255}, [](R r) { return r.times.solver; }},
      {"narrow phase", {255, 196, 84}, [](R r) { return r.times.narrowPhase; }},
      {"update AABBs", {255, 120, 160}, [](R r) { return r.times.updateAabbs; }},
      {"find pairs", {90, 225, 150}, [](R r) { return r.times.calculatePairs; }},
  };
  return series;
}

const std::vector<Series>& stageSeries() {
  static constexpr Colour kColours[] = {{170, 170, 180}, {255, 120, 160}, {255, 196, 84},
                                        {130, 150, 255}, {90, 225, 150},  {100, 205, 255},
                                        {255, 140, 60}};
  static const std::vector<Series> series = [] {
    std::vector<Series> all;
    for (std::size_t i = 0; i < std::size(lbvh::kStages); ++i)
      all.push_back({lbvh::kStages[i].name, kColours[i % std::size(kColours)],
                     [i](const StepRecord& record) { return record.stages.*lbvh::kStages[i].ms; }});
    return all;
  }();
  return series;
}

const std::vector<Series>& pairSeries() {
  using R = const StepRecord&;
  static const std::vector<Series> series = {
      {"in the cache", {100, 205, 255}, [](R r) { return double(r.pairs); }},
      {"added", colours::addedPair, [](R r) { return double(r.added); }},
      {"removed", colours::removedPair, [](R r) { return double(r.removed); }},
  };
  return series;
}
