// SPDX-License-Identifier: Zlib
// gpulbvh-report: writes an HTML page that compares CSV files of `gpulbvh-run --measure`.
// `gpulbvh-run --report` starts it. It is installed in the folder of the preloaded library.
// Usage: gpulbvh-report PAGE CSV...
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "report/html_page.h"
#include "report/svg_chart.h"

namespace {

struct LongStep {
  double ms = 0;
  int step = 0;
};

/// A line of a file: the measurements of one process over a period.
struct While {
  double seconds = 0, objects = 0, steps = 0, pairs = 0, updateMs = 0, findMs = 0, clockMs = 0;
  LongStep longest[3];
  double wallMs = -1;  ///< milliseconds from one step to the next; -1 (not known) in the first line
};

/// The lines of one process in a file.
struct Measured {
  std::string name, broadphase;
  std::vector<While> whiles;

  double steps() const {
    double sum = 0;
    for (const While& w : whiles) sum += w.steps;
    return sum;
  }
  /// The mean over all steps with a known value; -1 if there are none.
  template <class Value>
  double mean(Value value) const {
    double sum = 0, count = 0;
    for (const While& w : whiles) {
      if (value(w) < 0) continue;
      sum += w.steps * value(w);
      count += w.steps;
    }
    return count > 0 ? sum / count : -1;
  }
  std::vector<LongStep> longest() const {
    std::vector<LongStep> all;
    for (const While& w : whiles)
      for (const LongStep& step : w.longest)
        if (step.step > 0) all.push_back(step);
    std::stable_sort(all.begin(), all.end(),
                     [](const LongStep& a, const LongStep& b) { return a.ms > b.ms; });
    all.resize(std::min<std::size_t>(all.size(), 3));
    return all;
  }
};

using Value = double (*)(const While& w);
const Value kUpdate = [](const While& w) { return w.updateMs; };
const Value kFind = [](const While& w) { return w.findMs; };
const Value kBoth = [](const While& w) { return w.updateMs + w.findMs; };
const Value kLongest = [](const While& w) { return w.longest[0].ms; };
const Value kPairs = [](const While& w) { return w.pairs; };
const Value kWall = [](const While& w) { return w.wallMs; };

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

/// Reads one file. Finds its columns by their names.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    if (!file_) throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    std::string line;
    std::getline(file_, line);
    head_ = split(line);
    for (const char* name : {"process", "seconds", "broadphase", "steps", "third_step"}) at(name);
  }

  std::vector<Measured> read() {
    std::vector<Measured> runs;
    std::map<std::string, std::size_t> places;
    int number = 1;
    for (std::string line; std::getline(file_, line);) {
      ++number;
      fields_ = split(line);
      if (fields_.size() != head_.size())
        throw std::runtime_error(fmt::format("{}: line {} has {} fields instead of {}", path_,
                                             number, fields_.size(), head_.size()));
      const auto [place, isNew] = places.emplace(text("process"), runs.size());
      if (isNew) runs.push_back({nameOf(path_), {}, {}});
      Measured& run = runs[place->second];
      run.broadphase = text("broadphase");
      run.whiles.push_back(readWhile(run));
    }
    if (runs.empty()) throw std::runtime_error(path_ + ": no process made a broad phase");
    if (runs.size() > 1)
      for (const auto& [process, place] : places) runs[place].name += " (" + process + ")";
    return runs;
  }

 private:
  /// The name of the runs in a file, for example game-ours for gpulbvh-game-ours.csv.
  static std::string nameOf(const std::string& path) {
    const std::string name = std::filesystem::path(path).stem().string();
    const std::string prefix = "gpulbvh-";
    return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
  }
  std::size_t at(const std::string& name) const {
    const auto found = std::find(head_.begin(), head_.end(), name);
    if (found == head_.end())
      throw std::runtime_error(fmt::format("{}: no column {}", path_, name));
    return static_cast<std::size_t>(found - head_.begin());
  }
  const std::string& text(const std::string& name) const { return fields_[at(name)]; }
  double number(const std::string& name) const {
    std::size_t end = 0;
    double value = 0;
    try {
      value = std::stod(text(name), &end);
    } catch (const std::exception&) {
    }
    if (end == 0 || end != text(name).size())
      throw std::runtime_error(
          fmt::format("{}: {} must be a number, but is {}", path_, name, text(name)));
    return value;
  }
  While readWhile(const Measured& run) const {
    While w;
    w.seconds = number("seconds");
    w.objects = number("objects");
    w.steps = number("steps");
    w.pairs = number("pairs");
    w.updateMs = number("update_ms");
    w.findMs = number("find_ms");
    w.clockMs = number("clock_ms");
    int i = 0;
    for (const std::string name : {"longest", "second", "third"})
      w.longest[i++] = {number(name + "_ms"), static_cast<int>(number(name + "_step"))};
    if (!run.whiles.empty() && w.steps > 0)
      w.wallMs = 1000 * (w.seconds - run.whiles.back().seconds) / w.steps;
    return w;
  }

  std::string path_;
  std::ifstream file_;
  std::vector<std::string> head_, fields_;
};

const char* whose(const Measured& run) {
  return run.broadphase == "bullet" ? "Bullet’s own" : "GpuLbvhBroadphase";
}

class Page {
 public:
  explicit Page(std::vector<std::vector<Measured>> files) : files_(std::move(files)) {
    for (const std::vector<Measured>& file : files_)
      for (const Measured& run : file)
        if (run.broadphase != "bullet" && ours_ == nullptr) ours_ = &run;
  }

  std::string text() {
    page_ = beginPage("Broad phases of a program",
                      "Measured by gpulbvh-run, one line every two seconds. Means per step.");
    putTable();
    page_ += "<h2>Over time</h2>\n<div class=\"charts\">\n";
    putChart("Updating and finding", "mean of a step (ms)", kBoth);
    putChart("Longest step", "finding pairs (ms)", kLongest);
    putChart("Pairs in the cache", "mean (count)", kPairs);
    putChart("From one step to the next", "mean wall clock (ms)", kWall);
    page_ += "</div>\n<h2>How it was measured</h2>\n<dl>\n" + factRow("Page created", timeOfPage());
    for (const auto& [name, value] : systemFacts()) page_ += factRow(name, value);
    page_ += "</dl>\n";
    putNotes();
    return page_ + endPage();
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(page_), form, std::forward<Arguments>(arguments)...);
  }

  void putTable() {
    page_ += "<h2>Milliseconds per step</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>run</th>";
    for (const char* name : {"broad phase", "steps", "max<br>objects", "pairs", "update", "find",
                             "both", "both,<br>÷ ours", "step to<br>step",
                             "step to step,<br>÷ ours", "longest", "second", "third"})
      put("<th>{}</th>", name);
    page_ += "</tr></thead>\n<tbody>\n";
    for (std::size_t file = 0; file < files_.size(); ++file)
      for (const Measured& run : files_[file]) putRow(run, file);
    page_ += "</tbody></table></div>\n";
  }

  void putRow(const Measured& run, std::size_t file) {
    double objects = 0;
    for (const While& w : run.whiles) objects = std::max(objects, w.objects);
    put("<tr><th><span class=\"swatch c{}\"></span>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}"
        "</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        file % 4, escaped(run.name), whose(run), shortNumber(run.steps()), shortNumber(objects),
        number(run.mean(kPairs)), number(run.mean(kUpdate)), number(run.mean(kFind)),
        number(run.mean(kBoth)), againstOurs(run, kBoth), number(run.mean(kWall)),
        againstOurs(run, kWall));
    std::vector<LongStep> longest = run.longest();
    longest.resize(3);
    for (const LongStep& step : longest)
      step.step > 0 ? put("<td>{}<small>step {}</small></td>", number(step.ms), step.step)
                    : put("<td>–</td>");
    page_ += "</tr>\n";
  }

  /// Small values keep two digits, because steps of games can take only microseconds. A value below
  /// zero is unknown.
  static std::string number(double ms) {
    if (ms < 0) return "–";
    return ms > 0 && ms < 0.1 ? fmt::format("{:.2g}", ms) : shortNumber(ms);
  }

  /// The ratio of the value of `run` to that of the first run with GpuLbvhBroadphase, or a dash if
  /// one of them is unknown or 0.
  std::string againstOurs(const Measured& run, Value value) const {
    if (ours_ == nullptr || run.mean(value) <= 0 || ours_->mean(value) <= 0) return "–";
    return fmt::format("{:.2f} ×", run.mean(value) / ours_->mean(value));
  }

  /// For each file, draws the process with the most steps.
  void putChart(const char* title, const char* unit, Value value) {
    LineChart chart{title, {"time (s)"}, {unit}, {}};
    for (std::size_t file = 0; file < files_.size(); ++file) {
      const std::vector<Measured>& runs = files_[file];
      const Measured& run = *std::max_element(
          runs.begin(), runs.end(),
          [](const Measured& a, const Measured& b) { return a.steps() < b.steps(); });
      Line line{run.name.substr(0, 30), static_cast<int>(file % 4), {}, {}};
      for (const While& w : run.whiles) {
        if (value == kWall && w.wallMs < 0) continue;
        line.x.push_back(w.seconds);
        line.y.push_back(value(w));
      }
      if (!line.x.empty()) chart.lines.push_back(std::move(line));
    }
    if (!chart.lines.empty()) put("<figure>{}</figure>\n", toSvg(chart));
  }

  void putNotes() {
    double clock = 0;
    for (const std::vector<Measured>& file : files_)
      for (const Measured& run : file)
        for (const While& w : run.whiles) clock = std::max(clock, w.clockMs);
    page_ += "<h2>How to read it</h2>\n<ul>\n";
    put("<li>“Update” is the time of all setAabb calls of a step, estimated from one in 61 of "
        "them. “Find” is the time of calculateOverlappingPairs. Bullet’s own broad phase finds "
        "most pairs during updates, and GpuLbvhBroadphase finds all of them in find. So compare "
        "the sum of both. Reading the clock took at most {} ms of a step.</li>\n",
        number(clock));
    page_ +=
        "<li>“Step to step” includes everything that the program does, also its waiting for the "
        "display. The first two seconds, with the program’s start, do not count.</li>\n"
        "<li>The longest steps are those that took longest to find pairs. Reasons may be new "
        "memory in the first steps, or another process on the core.</li>\n"
        "<li>The runs were made one after another. Other work on the machine affects only one "
        "of them, so measure twice.</li>\n</ul>\n";
  }

  const std::vector<std::vector<Measured>> files_;
  const Measured* ours_ = nullptr;
  std::string page_;
};

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  if (!file) throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
  file << text;
  if (!file.flush()) throw std::runtime_error(fmt::format("{}: cannot be written", path));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("Usage: gpulbvh-report PAGE CSV...\n", stderr);
    return 2;
  }
  try {
    std::vector<std::vector<Measured>> files;
    for (int i = 2; i < argc; ++i) files.push_back(Reader(argv[i]).read());
    write(argv[1], Page(std::move(files)).text());
    fmt::print("report written to {}\n", argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpulbvh-report: {}\n", error.what());
    return 1;
  }
}
