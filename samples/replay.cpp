// SPDX-License-Identifier: Zlib
// replay: finds the pairs of recorded boxes, frame by frame, and prints count, hash and times; with
// one finder, or with all in turn. Compares the exact ones with each other and with the .ref beside
// the file, if there is one.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "support/box_finders.h"
#include "support/command_line.h"
#include "support/recorded_boxes.h"
#include "support/system.h"
#include "support/timing.h"

namespace {

constexpr const char* kAll = "all";

struct Settings {
  std::string file;
  std::string finder = "core";
  lbvh::Options options;
  std::optional<std::uint32_t> frames;
  bool stages = false;
};

struct Times {
  std::vector<double> update;
  std::vector<double> find;
  std::vector<double> total;
  std::vector<lbvh::StepStats> stages;
};

/// A finder and what it did so far.
struct Contestant {
  std::string name;
  std::unique_ptr<BoxFinder> finder;
  Times times;
  PairHash found;  ///< in the last frame
};

/// The reference, if there is one. It is emptied, with a message, if this finder is not exact.
std::optional<Reference> usableReference(const Settings& settings, const BoxReader& reader) {
  const std::string path = referencePath(settings.file);
  std::optional<Reference> reference = readReference(path);
  if (!reference || reference->empty()) return reference;
  if (const std::uint32_t last = reference->rbegin()->first; last >= reader.frames())
    throw FileError(fmt::format("{}: has frame {}, but {} has {} frames", path, last, settings.file,
                                reader.frames()));
  if (settings.finder != kAll && !findsExactly(settings.finder)) {
    fmt::print(stderr, "replay: {} finds more pairs than overlap; not compared with {}\n",
               settings.finder, path);
    reference->clear();
  }
  return reference;
}

bool isSame(const PairHash& found, const PairHash& expected, std::uint32_t frame,
            const std::string& name, const char* expectedFrom) {
  if (expected == found) return true;
  fmt::print(stderr, "replay: frame {}: {} has {} pairs, hash {:016x}; {} has {}, {:016x}\n", frame,
             name, found.pairs(), found.hash(), expectedFrom, expected.pairs(), expected.hash());
  return false;
}

/// Null if the reference does not have this frame.
const PairHash* expectedIn(const std::optional<Reference>& reference, std::uint32_t frame) {
  if (!reference) return nullptr;
  const auto row = reference->find(frame);
  return row == reference->end() ? nullptr : &row->second;
}

/// Whether all pairs of this frame are as they must be. The exact finders agree with the first of
/// them, and with the reference if it has this frame; the others do not have fewer pairs.
bool agree(const std::vector<Contestant>& contestants, const PairHash* expected,
           std::uint32_t frame) {
  const PairHash& first = contestants.front().found;
  bool all = true;
  for (const Contestant& one : contestants) {
    if (findsExactly(one.name)) {
      if (expected != nullptr)
        all = isSame(one.found, *expected, frame, one.name, "the reference") && all;
      all = isSame(one.found, first, frame, one.name, contestants.front().name.c_str()) && all;
    } else if (contestants.size() > 1 && one.found.pairs() < first.pairs()) {
      fmt::print(stderr, "replay: frame {}: {} has only {} of {} pairs\n", frame, one.name,
                 one.found.pairs(), first.pairs());
      all = false;
    }
  }
  return all;
}

/// Medians a frame; on a GPU by its own clock.
void printStages(const std::vector<lbvh::StepStats>& frames) {
  fmt::print("stages");
  for (const lbvh::Stage& stage : lbvh::kStages) {
    std::vector<double> values;
    for (const lbvh::StepStats& frame : frames) values.push_back(frame.*stage.ms);
    std::string name = stage.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    fmt::print(" {}_ms={:.4f}", name, median(values));
  }
  fmt::print("\n");
}

/// One frame: checking and hashing are not timed.
void replayFrame(Contestant& one, const std::vector<lbvh::Aabb>& boxes) {
  const Stopwatch total;
  one.finder->setBoxes(boxes);
  one.times.update.push_back(total.milliseconds());
  const Stopwatch find;
  one.finder->find();
  one.times.find.push_back(find.milliseconds());
  one.times.total.push_back(total.milliseconds());
  if (const lbvh::StepStats* stats = one.finder->stats()) one.times.stages.push_back(*stats);
  one.found = one.finder->pairs();
}

/// For each finder why it is left out; empty if it takes all frames of the file in a sensible time.
std::vector<std::string> whyNot(const std::vector<std::string>& names, const std::string& path,
                                std::uint32_t frames) {
  BoxReader reader(path);
  std::vector<std::string> reasons;
  for (const std::string& name : names)
    reasons.push_back(whyLeftOut(name, static_cast<int>(reader.objects())));
  std::vector<lbvh::Aabb> boxes;
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    reader.read(boxes);
    requireBoxes("core", boxes, path);  // boxes that no finder takes are an error
    for (std::size_t i = 0; i < names.size(); ++i) {
      try {
        if (reasons[i].empty()) requireBoxes(names[i], boxes, path);
      } catch (const FileError& error) {
        reasons[i] = error.what();
      }
    }
  }
  return reasons;
}

std::vector<std::string> chosen(const Settings& settings, std::uint32_t frames) {
  if (settings.finder != kAll) return {settings.finder};
  const std::vector<std::string> all = boxFinderNames();
  const std::vector<std::string> reasons = whyNot(all, settings.file, frames);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (reasons[i].empty())
      names.push_back(all[i]);
    else
      fmt::print("{} is left out: {}\n", all[i], reasons[i]);
  }
  return names;
}

void printComparison(const std::vector<Contestant>& contestants) {
  double dbvt = 0;
  for (const Contestant& one : contestants)
    if (one.name == "dbvt") dbvt = median(one.times.total);
  fmt::print("\n{:<12}{:>7}{:>11}{:>10}{:>11}{:>9}{:>14}{:>11}\n", "median ms", "exact", "update",
             "find", "both", "95 %", "dbvt / this", "pairs");
  for (const Contestant& one : contestants) {
    const double both = median(one.times.total);
    fmt::print("{:<12}{:>7}{:>11.3f}{:>10.3f}{:>11.3f}{:>9.3f}{:>14}{:>11}\n", one.name,
               findsExactly(one.name) ? "yes" : "no", median(one.times.update),
               median(one.times.find), both, percentile(one.times.total, 0.95),
               both > 0 ? fmt::format("{:.2f}", dbvt / both) : "-", one.found.pairs());
  }
  fmt::print(
      "Exact: just the boxes that overlap, checked against each other in every frame; the "
      "others have more.\nPairs: of the last frame.\n\n");
}

void printSummary(const Contestant& one, std::uint32_t objects) {
  const Space space = one.finder->space();
  fmt::print(
      "summary broadphase={} backend={} threads={} objects={} frames={} median_update_ms={:.6f} "
      "median_find_ms={:.6f} median_total_ms={:.6f} peak_rss_mb={:.1f}\n",
      one.name, space.word, space.threads, objects, one.times.total.size(),
      median(one.times.update), median(one.times.find), median(one.times.total), peakMemoryMb());
}

/// The finders take turns frame by frame, each time another first, so that what disturbs the
/// machine disturbs all of them.
int replay(const Settings& settings) {
  const bool usesBackend =
      settings.finder == "core" || settings.finder == "gpu-lbvh" || settings.finder == kAll;
  requireBackend(settings.options, usesBackend);
  if (settings.stages && !usesBackend)
    throw UsageError("--stages: " + settings.finder + " tells nothing of its stages");
  BoxReader reader(settings.file);
  warnIfCutOff(reader, settings.file);
  const std::optional<Reference> reference = usableReference(settings, reader);
  const std::uint32_t frames = std::min(reader.frames(), settings.frames.value_or(reader.frames()));
  std::vector<lbvh::Aabb> boxes;
  const auto readFrame = [&] {
    reader.read(boxes);
    requireBoxes(settings.finder, boxes, settings.file);
  };
  const std::vector<std::string> names = chosen(settings, frames);
  readFrame();
  std::vector<Contestant> contestants;
  for (const std::string& name : names)
    contestants.push_back({name, makeBoxFinder(name, settings.options, boxes), {}, {}});

  bool allAgree = true;
  std::uint32_t compared = 0;
  for (std::uint32_t frame = 0; frame < frames && allAgree; ++frame) {
    if (frame > 0) readFrame();
    for (std::size_t turn = 0; turn < contestants.size(); ++turn)
      replayFrame(contestants[(frame + turn) % contestants.size()], boxes);
    const Contestant& first = contestants.front();
    fmt::print("frame={} pairs={} hash={:016x} update_ms={:.3f} find_ms={:.3f}\n", frame,
               first.found.pairs(), first.found.hash(), first.times.update.back(),
               first.times.find.back());
    const PairHash* expected = expectedIn(reference, frame);
    if (expected != nullptr) ++compared;
    allAgree = agree(contestants, expected, frame);
  }
  if (reference) fmt::print("compared {} of {} frames\n", compared, frames);
  if (contestants.size() > 1) printComparison(contestants);
  for (const Contestant& one : contestants) {
    if (settings.stages && !one.times.stages.empty()) printStages(one.times.stages);
    printSummary(one, reader.objects());
  }
  return allAgree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Finds the overlapping pairs of recorded boxes, frame by frame.", "replay");
  app.add_option("FILE", settings.file, "recorded boxes, .aabb; a .ref beside it is compared with")
      ->required()
      ->check(notEmpty());
  std::vector<std::string> names = boxFinderNames();
  names.emplace_back(kAll);
  app.add_option("--broadphase", settings.finder,
                 "core: the library alone; the others through Bullet's interface; all: a table")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--frames", settings.frames, "at most so many frames; default: all")
      ->check(CLI::Range(std::uint32_t{1}, std::numeric_limits<std::uint32_t>::max()));
  app.add_flag("--stages", settings.stages,
               "print the median of each stage, for core and gpu-lbvh");
  app.add_flag_callback(
      "--sort-each-step", [&settings] { settings.options.keepOrder = false; },
      "on a GPU: keep no order of the boxes over steps");
  addFinderOptions(app, settings.options);
  return runProgram(app, argc, argv, [&settings] {
    settings.options.stageTimes = settings.stages;
    return replay(settings);
  });
}
