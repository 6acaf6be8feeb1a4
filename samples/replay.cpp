// SPDX-License-Identifier: Zlib
// replay: finds the pairs of recorded boxes frame by frame, and prints their count, hash and times.
// Uses one finder, or all of them alternately. Compares the pairs of exact finders with each other,
// and with the recording's .ref file if there is one.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "broadphase/core/test_hooks.h"
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
  std::uint32_t untimed = 0;
  bool timesPairs = false;
  bool stages = false;
};

/// Milliseconds of each timed frame.
struct Times {
  std::vector<double> update;
  std::vector<double> find;
  std::vector<double> total;
  std::vector<lbvh::StepStats> stages;
};

/// A finder and its results so far.
struct Contestant {
  std::string name;
  std::unique_ptr<BoxFinder> finder;
  Times times;
  PairHash found;  ///< count and hash of the last frame's pairs
};

/// The reference, if there is one. If the finder is not exact, the reference is emptied, and a
/// message is printed.
std::optional<Reference> usableReference(const Settings& settings, const BoxReader& reader) {
  const std::string path = referencePath(settings.file);
  std::optional<Reference> reference = readReference(path);
  if (!reference || reference->empty()) return reference;
  if (const std::uint32_t last = reference->rbegin()->first; last >= reader.frames())
    throw FileError(fmt::format("{}: has frame {}, but {} has {} frames", path, last, settings.file,
                                reader.frames()));
  if (settings.finder != kAll && !findsExactly(settings.finder)) {
    fmt::print(stderr, "replay: {} also finds pairs that do not overlap; not compared with {}\n",
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

/// Whether all finders found the right pairs in this frame. Exact finders must agree with the first
/// one, and with the reference if it has this frame. The other finders must not find fewer pairs
/// than the first one.
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

/// Prints the median of each stage over the frames. A GPU's stages are measured by its own clock.
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

/// Replays one frame. Checks and hashes are not timed.
void replayFrame(Contestant& one, const std::vector<lbvh::Aabb>& boxes, const Settings& settings,
                 std::uint32_t frame) {
  if (frame == settings.untimed) one.times = {};
  const Stopwatch total;
  one.finder->setBoxes(boxes);
  one.times.update.push_back(total.milliseconds());
  const Stopwatch find;
  one.finder->find();
  if (settings.timesPairs) one.finder->countPairs();
  one.times.find.push_back(find.milliseconds());
  one.times.total.push_back(total.milliseconds());
  if (const lbvh::StepStats* stats = one.finder->stats()) one.times.stages.push_back(*stats);
  one.found = one.finder->pairs();
}

/// For each finder, the reason to leave it out. The reason is empty if the finder accepts all
/// frames of the file and is fast enough for them.
std::vector<std::string> whyNot(const std::vector<std::string>& names, const std::string& path,
                                std::uint32_t frames) {
  BoxReader reader(path);
  std::vector<std::string> reasons;
  for (const std::string& name : names)
    reasons.push_back(whyLeftOut(name, static_cast<int>(reader.objects())));
  std::vector<lbvh::Aabb> boxes;
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    reader.read(boxes);
    requireBoxes("core", boxes, path);  // boxes that no finder accepts are an error
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
      "Exact: finds only pairs that overlap. The exact ones were compared in every frame; the "
      "others find more.\nPairs: in the last frame.\n\n");
}

void printSummary(const Contestant& one, std::uint32_t objects, std::uint32_t frames) {
  const Space space = one.finder->space();
  fmt::print(
      "summary broadphase={} backend={} threads={} objects={} frames={} median_update_ms={:.6f} "
      "median_find_ms={:.6f} median_total_ms={:.6f} mean_total_ms={:.6f} max_total_ms={:.6f} "
      "peak_rss_mb={:.1f}\n",
      one.name, space.word, space.threads, objects, frames, median(one.times.update),
      median(one.times.find), median(one.times.total), mean(one.times.total),
      percentile(one.times.total, 1), peakMemoryMb());
}

/// The finders alternate frame by frame, and each frame begins with a different finder. So
/// other load on the machine affects all of them equally.
int replay(const Settings& settings) {
  const bool usesBackend =
      settings.finder == "core" || settings.finder == "gpu-lbvh" || settings.finder == kAll;
  requireBackend(settings.options, usesBackend);
  if (settings.stages && !usesBackend)
    throw UsageError("--stages: " + settings.finder + " does not report its stages");
  BoxReader reader(settings.file);
  warnIfCutOff(reader, settings.file);
  const std::optional<Reference> reference = usableReference(settings, reader);
  const std::uint32_t frames = std::min(reader.frames(), settings.frames.value_or(reader.frames()));
  if (settings.untimed >= frames)
    throw UsageError(
        fmt::format("--untimed {}: there are only {} frames", settings.untimed, frames));
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
  std::uint32_t compared = 0, frame = 0;
  for (; frame < frames && allAgree; ++frame) {
    if (frame > 0) readFrame();
    for (std::size_t turn = 0; turn < contestants.size(); ++turn)
      replayFrame(contestants[(frame + turn) % contestants.size()], boxes, settings, frame);
    const Contestant& first = contestants.front();
    fmt::print("frame={} pairs={} hash={:016x} update_ms={:.3f} find_ms={:.3f}\n", frame,
               first.found.pairs(), first.found.hash(), first.times.update.back(),
               first.times.find.back());
    std::fflush(stdout);  // so that the output shows which frame hangs
    const PairHash* expected = expectedIn(reference, frame);
    if (expected != nullptr) ++compared;
    allAgree = agree(contestants, expected, frame);
  }
  if (reference) fmt::print("compared {} of {} frames\n", compared, frames);
  if (contestants.size() > 1) printComparison(contestants);
  for (const Contestant& one : contestants) {
    if (settings.stages && !one.times.stages.empty()) printStages(one.times.stages);
    printSummary(one, reader.objects(), frame);
  }
  return allAgree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine line("Finds the overlapping pairs of recorded boxes, frame by frame.", "replay");
  line.add("FILE", settings.file, "recorded boxes, .aabb; pairs are compared with a .ref beside it")
      .required()
      .notEmpty();
  std::vector<std::string> names = boxFinderNames();
  names.emplace_back(kAll);
  line.add("--broadphase", settings.finder,
           "core: the library alone; the others through Bullet's interface; all: a table")
      .oneOf(names)
      .showDefault();
  line.add("--frames", settings.frames, "maximum number of frames; default: all")
      .range(std::uint32_t{1}, std::numeric_limits<std::uint32_t>::max());
  line.add("--untimed", settings.untimed, "number of first frames whose times do not count")
      .range(std::uint32_t{0}, std::numeric_limits<std::uint32_t>::max())
      .showDefault();
  line.addFlag("--time-pairs", settings.timesPairs, "also time the access to all pairs");
  line.addFlag("--stages", settings.stages,
               "print the median of each stage, for core and gpu-lbvh");
  line.addFlag("--sort-each-step", lbvh::testHooks.sortsEachStep,
               "on a GPU: sort the boxes again in each step");
  line.addFinder(settings.options);
  line.addHierarchy(settings.options);
  return runProgram(line, argc, argv, [&settings] {
    settings.options.stageTimes = settings.stages;
    return replay(settings);
  });
}
