// SPDX-License-Identifier: Zlib
// Writes the page of a report. Its head is in html_page.h, and its charts are in svg_chart.h.
#include "report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "report/html_page.h"
#include "report/machine.h"
#include "report/svg_chart.h"
#include "support/recorded_boxes.h"
#include "support/timing.h"

namespace {

using AtSize = Comparison::AtSize;
using Value = double (*)(const StepTimes& times);

struct Part {
  const char* name;
  Value value;
};

double rest(const StepTimes& times) {
  return std::max(0.0, times.step - times.broadphase() - times.narrowPhase - times.solver);
}

const Part kParts[] = {
    {"updateAabbs", [](const StepTimes& times) { return times.updateAabbs; }},
    {"find pairs", [](const StepTimes& times) { return times.calculatePairs; }},
    {"narrow phase", [](const StepTimes& times) { return times.narrowPhase; }},
    {"solver", [](const StepTimes& times) { return times.solver; }},
    {"rest", rest},
};
const Value kBroadphase = [](const StepTimes& times) { return times.broadphase(); };
const Value kStep = [](const StepTimes& times) { return times.step; };

std::vector<double> valuesOf(const Run& run, Value value) {
  std::vector<double> values;
  for (const StepTimes& times : run.steps) values.push_back(value(times));
  return values;
}

double medianOf(const Run& run, Value value) { return median(valuesOf(run, value)); }

double sumOf(const Run& run, Value value) {
  const std::vector<double> values = valuesOf(run, value);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

const Run* find(const std::vector<Run>& runs, const std::string& broadphase) {
  for (const Run& run : runs)
    if (run.broadphase == broadphase) return &run;
  return nullptr;
}

/// Each broad phase has the same colour in all charts.
int colourOf(const std::string& broadphase) {
  const std::vector<std::string>& names = broadphaseNames();
  return static_cast<int>(std::find(names.begin(), names.end(), broadphase) - names.begin());
}

class Page {
 public:
  explicit Page(const Comparison& comparison)
      : all_(comparison), last_(comparison.sizes.back()), base_(baseOf(last_.runs)) {}

  std::string text() {
    const std::string title = fmt::format("Broad phases compared: {}", all_.scene->name);
    page_ = beginPage(title, fmt::format("{}: {}. {} objects, {} steps of 1/60 s.",
                                         all_.scene->name, all_.scene->stresses,
                                         shortNumber(last_.objects), shortNumber(all_.steps)));
    putFindings();
    putTable();
    putTails();
    putCharts();
    if (all_.sizes.size() > 1) putSizes();
    putCircumstances();
    putNotes();
    return page_ + endPage();
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(page_), form, std::forward<Arguments>(arguments)...);
  }

  /// The ratio of the value of `run` to that of baseOf(), or a dash if the latter is 0.
  std::string againstBase(const Run& run, Value value) const {
    const double base = medianOf(base_, value);
    return base > 0 ? fmt::format("{:.2f} ×", medianOf(run, value) / base) : "–";
  }

  void putFindings() {
    const Run *ours = find(last_.runs, "gpu-lbvh"), *dbvt = find(last_.runs, "dbvt");
    if (ours == nullptr || dbvt == nullptr) return;
    const double broadphase = medianOf(*ours, kBroadphase);
    const double ratio = medianOf(*dbvt, kBroadphase) / std::max(broadphase, 1e-9);
    const double step = medianOf(*dbvt, kStep) / std::max(medianOf(*ours, kStep), 1e-9);
    put("<p class=\"finding\"><strong>gpu-lbvh</strong> takes <strong>{} ms</strong> a step for "
        "the broad phase, <strong>dbvt</strong> {} ms: {:.2f} times as long. The whole step takes "
        "{} ms and {} ms, {:.2f} times as long, with {} and {} pairs in the cache at the end. "
        "Medians.</p>\n",
        shortNumber(broadphase), shortNumber(medianOf(*dbvt, kBroadphase)), ratio,
        shortNumber(medianOf(*ours, kStep)), shortNumber(medianOf(*dbvt, kStep)), step,
        shortNumber(ours->pairs), shortNumber(dbvt->pairs));
  }

  void putTable() {
    put("<h2>Milliseconds per step</h2>\n<div class=\"wide\"><table>\n<caption>Median, and below "
        "it "
        "the time that 95 % of the steps stay under.</caption>\n<thead><tr><th>broad phase</th>");
    for (const char* name : {"update-<br>Aabbs", "find<br>pairs", "narrow<br>phase", "solver",
                             "rest", "broad<br>phase", "whole<br>step"})
      put("<th>{}</th>", name);
    put("<th>broad phase’s<br>share</th><th>broad phase,<br>÷ {0}</th><th>step,<br>÷ {0}</th>"
        "<th>pairs at<br>the end</th></tr></thead>\n<tbody>\n",
        base_.broadphase);
    for (const Run& run : last_.runs) putRow(run);
    page_ += "</tbody></table></div>\n";
  }

  void putRow(const Run& run) {
    put("<tr><th><span class=\"swatch c{}\"></span>{}</th>", colourOf(run.broadphase),
        run.broadphase);
    for (const Part& part : kParts) putTimes(run, part.value);
    putTimes(run, kBroadphase);
    putTimes(run, kStep);
    const double share = sumOf(run, kBroadphase) / std::max(sumOf(run, kStep), 1e-9);
    put("<td>{:.1f} %</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", 100 * share,
        againstBase(run, kBroadphase), againstBase(run, kStep), shortNumber(run.pairs));
  }

  void putTimes(const Run& run, Value value) {
    put("<td>{}<small>{}</small></td>", shortNumber(medianOf(run, value)),
        shortNumber(percentile(valuesOf(run, value), 0.95)));
  }

  void putTails() {
    page_ +=
        "<h2>Slow steps of the broad phase</h2>\n<div "
        "class=\"wide\"><table>\n<caption>Milliseconds. "
        "The longest steps: number and time, and below them the ratio to the median of the 15 "
        "steps around, and the reason.</caption>\n<thead><tr><th>broad "
        "phase</th><th>median</th><th>95 %</th>"
        "<th>99 %</th><th>max</th><th>longest</th><th>second</th><th>third</th></tr></thead>\n"
        "<tbody>\n";
    for (const Run& run : last_.runs) {
      const Tails tails = tailsOf(run.facts);
      put("<tr><th><span class=\"swatch c{}\"></span>{}</th><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td>",
          colourOf(run.broadphase), run.broadphase, shortNumber(tails.median),
          shortNumber(tails.p95), shortNumber(tails.p99), shortNumber(tails.max));
      for (std::size_t i = 0; i < 3; ++i)
        page_ += i < tails.longest.size() ? cellOf(tails.longest[i]) : "<td>–</td>";
      page_ += "</tr>\n";
    }
    page_ += "</tbody></table></div>\n";
  }

  static std::string cellOf(const LongStep& step) {
    return fmt::format("<td>step {}: {}<small>{:.1f} ×, {}</small></td>", step.step,
                       shortNumber(step.ms), timesAround(step), escaped(step.reason));
  }

  void putFigure(const std::string& svg) { put("<figure>{}</figure>\n", svg); }

  /// Long runs are drawn as medians of several steps.
  LineChart overSteps(const char* title, const char* unit,
                      std::vector<double> (*values)(const Run& run)) const {
    constexpr std::size_t kMaxPoints = 400;
    LineChart chart;
    chart.title = title;
    chart.y.title = unit;
    const std::size_t piece = (last_.runs.front().steps.size() + kMaxPoints - 1) / kMaxPoints;
    chart.x.title = piece > 1 ? fmt::format("step (medians of {})", piece) : "step";
    for (const Run& run : last_.runs) {
      Line line{run.broadphase, colourOf(run.broadphase), {}, {}};
      const std::vector<double> all = values(run);
      for (std::size_t i = 0; i < all.size(); i += piece) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
        const auto count = static_cast<std::ptrdiff_t>(std::min(piece, all.size() - i));
        line.x.push_back(double(i + 1));
        line.y.push_back(median(std::vector<double>(first, first + count)));
      }
      chart.lines.push_back(std::move(line));
    }
    return chart;
  }

  /// Whether values differ so much that a linear axis would show only the largest.
  static bool spreads(const LineChart& chart) {
    double least = 1e300, most = 0;
    for (const Line& line : chart.lines) {
      const double middle = median(line.y);
      if (middle > 0) least = std::min(least, middle);
      most = std::max(most, percentile(line.y, 0.95));
    }
    return most > 8 * least;
  }

  LineChart timesOverSteps(const char* title, const char* unit,
                           std::vector<double> (*values)(const Run& run)) const {
    LineChart chart = overSteps(title, unit, values);
    chart.y.log = spreads(chart);
    if (chart.y.log) chart.y.title += ", logarithmic";
    return chart;
  }

  void putCharts() {
    page_ += "<h2>Over the steps</h2>\n<div class=\"charts\">\n";
    putFigure(toSvg(timesOverSteps("Milliseconds of the broad phase", "broad phase (ms)",
                                   [](const Run& run) { return valuesOf(run, kBroadphase); })));
    putFigure(toSvg(timesOverSteps("Milliseconds of the whole step", "whole step (ms)",
                                   [](const Run& run) { return valuesOf(run, kStep); })));
    putFigure(toSvg(overSteps(
        "Pairs in the cache after each step", "overlapping pairs (count)", [](const Run& run) {
          return std::vector<double>(run.pairCounts.begin(), run.pairCounts.end());
        })));
    putFigure(toSvg(sharesOfStep()));
    page_ += "</div>\n";
  }

  StackedBars sharesOfStep() const {
    StackedBars chart;
    chart.title = "Where the time of a step goes";
    chart.axisTitle = "share of the whole step, summed over all steps (%)";
    for (const Part& part : kParts) chart.parts.emplace_back(part.name);
    for (const Run& run : last_.runs) {
      double sum = 0;
      for (const Part& part : kParts) sum += sumOf(run, part.value);
      StackedBars::Bar bar{run.broadphase, {}, {}};
      for (const Part& part : kParts)
        bar.shares.push_back(sumOf(run, part.value) / std::max(sum, 1e-9));
      bar.note = fmt::format("mean {} ms", shortNumber(sum / double(run.steps.size())));
      chart.bars.push_back(std::move(bar));
    }
    return chart;
  }

  LineChart overSizes(const char* title, const char* unit, Value value) const {
    LineChart chart{title, {"objects (count), logarithmic", true, {}}, {unit, true, {}}, {}};
    for (const AtSize& size : all_.sizes) chart.x.marks.push_back(size.objects);
    for (const std::string& name : broadphaseNames()) {
      Line line{name, colourOf(name), {}, {}};
      for (const AtSize& size : all_.sizes) {
        const Run* run = find(size.runs, name);
        if (run == nullptr) continue;
        line.x.push_back(size.objects);
        line.y.push_back(medianOf(*run, value));
      }
      if (!line.x.empty()) chart.lines.push_back(std::move(line));
    }
    return chart;
  }

  void putSizes() {
    page_ += "<h2>Over the number of objects</h2>\n<div class=\"charts\">\n";
    putFigure(toSvg(overSizes("Broad phase over the number of objects",
                              "median broad phase (ms), logarithmic", kBroadphase)));
    putFigure(toSvg(overSizes("Whole step over the number of objects",
                              "median step (ms), logarithmic", kStep)));
    page_ +=
        "</div>\n<div class=\"wide\"><table>\n<caption>Median milliseconds of the broad phase "
        "a step.</caption>\n"
        "<thead><tr><th>objects</th>";
    std::vector<std::string> names;  // of the smallest size; larger sizes may lack some of them
    for (const Run& run : all_.sizes.front().runs) names.push_back(run.broadphase);
    for (const std::string& name : names) put("<th>{}</th>", name);
    page_ += "</tr></thead>\n<tbody>\n";
    for (const AtSize& size : all_.sizes) {
      put("<tr><th>{}</th>", shortNumber(size.objects));
      for (const std::string& name : names) {
        const Run* run = find(size.runs, name);
        put("<td>{}</td>", run != nullptr ? shortNumber(medianOf(*run, kBroadphase)) : "–");
      }
      page_ += "</tr>\n";
    }
    page_ += "</tbody></table></div>\n";
  }

  void putFact(const std::string& name, const std::string& value) { page_ += factRow(name, value); }

  void putCircumstances() {
    put("<h2>How it was measured</h2>\n<dl>\n<dt>Command</dt><dd><code>{}</code></dd>\n",
        escaped(all_.command));
    putFact("Time", timeOfPage());
    putFact("Seed", fmt::format("{}", all_.seed));
    for (const auto& [name, value] : machineFacts()) putFact(name, value);
    for (const Run& run : last_.runs) putFact(run.broadphase + " ran on", run.space.details);
    page_ += "</dl>\n";
  }

  void putNotes() {
    page_ +=
        "<h2>How to read it</h2>\n<ul>\n"
        "<li>The broad phase is updateAabbs (setAabb for every object) and find pairs "
        "(calculateOverlappingPairs). Some broad phases do most of their work in the first, "
        "others in the second.</li>\n"
        "<li>Reasons of slow steps. growth: memory grew. full_search: all objects were searched "
        "for, but fewer in the steps around it. waiting: the thread was not on a core for at least "
        "half of the excess time. first: it was the first step. -: none of these.</li>\n"
        "<li>The worlds take turns step by step, so that other work on the machine affects "
        "all of them alike.</li>\n"
        "<li>gpu-lbvh and simple keep exactly the pairs whose boxes overlap. dbvt and axis-sweep "
        "keep more: dbvt fattens boxes and keeps pairs longer, and axis-sweep rounds boxes "
        "outward. The solver depends on the order of pairs. So worlds with different broad phases "
        "are not equal bit for bit, and their pairs differ for that reason, too.</li>\n";
    for (const LeftOut& one : all_.leftOut)
      put("<li>Left out at {} objects: {}, because {}.</li>\n", shortNumber(one.objects),
          one.broadphase, escaped(one.reason));
    page_ += "</ul>\n";
  }

  const Comparison& all_;
  const AtSize& last_;
  const Run& base_;
  std::string page_;
};

}  // namespace

void writeHtmlReport(const std::string& path, const Comparison& comparison) {
  std::ofstream file(path, std::ios::trunc);
  if (!file) throw FileError(fmt::format("{}: {}", path, std::strerror(errno)));
  file << Page(comparison).text();
  if (!file.flush()) throw FileError(fmt::format("{}: cannot be written", path));
}
